"""The attention as modules: the layer itself, and a block with projections around it."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from psal import checks
from psal.functional import patch_attention
from psal.matches import Matches
from psal.options import BACKENDS, INITS, PADDING_MODES, Similarity
from psal.seeds import check_seed


class PatchAttention(nn.Module):
    """:func:`psal.patch_attention` as a layer, with the same arguments; it has no weights.

    Args:
        patch_size, neighbors, iterations, similarity, aggregate, temperature, init, padding_mode, seed, backend: as
            in :func:`psal.patch_attention`.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> import torch
    >>> image, reference = torch.rand(1, 3, 16, 16), torch.rand(1, 3, 16, 16)
    >>> PatchAttention(patch_size=5, aggregate=True)(image, reference, reference).shape
    torch.Size([1, 3, 16, 16])
    """

    def __init__(
        self,
        patch_size: int | Sequence[int] = 7,
        neighbors: int = 3,
        *,
        iterations: int | None = None,
        similarity: Similarity = "l2",
        aggregate: bool = False,
        temperature: float = 1.0,
        init: str | None = None,
        padding_mode: str = "replicate",
        seed: int | None = None,
        backend: str | None = None,
    ) -> None:
        super().__init__()
        checks.check_patch_size(patch_size)
        checks.check_count("neighbors", neighbors, 1)
        if iterations is not None:
            checks.check_count("iterations", iterations, 0)
        checks.check_similarity(similarity)
        checks.check_temperature(temperature)
        if init is not None:
            checks.check_word("init", init, INITS)
        checks.check_word("padding_mode", padding_mode, PADDING_MODES)
        check_seed(seed)
        if backend is not None:
            checks.check_word("backend", backend, BACKENDS)
        self.patch_size = patch_size
        self.neighbors = neighbors
        self.iterations = iterations
        self.similarity = similarity
        self.aggregate = aggregate
        self.temperature = temperature
        self.init = init
        self.padding_mode = padding_mode
        self.seed = seed
        self.backend = backend

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_mask: Tensor | None = None,
        query_mask: Tensor | None = None,
        init: str | Matches | None = None,
    ) -> Tensor:
        """Attend; an ``init`` given here, for example the last frame's matches, goes before the layer's own."""
        out = patch_attention(
            query, key, value,
            aggregate=self.aggregate, temperature=self.temperature, patch_size=self.patch_size,
            neighbors=self.neighbors, iterations=self.iterations, similarity=self.similarity,
            init=self.init if init is None else init, key_mask=key_mask, query_mask=query_mask,
            padding_mode=self.padding_mode, seed=self.seed, backend=self.backend,
        )  # fmt: skip
        assert isinstance(out, Tensor)
        return out

    def extra_repr(self) -> str:
        """Patch size and k always, the rest where it is not the default."""
        shown = [f"patch_size={self.patch_size}", f"neighbors={self.neighbors}"]
        defaults = {
            "iterations": None, "similarity": "l2", "aggregate": False, "temperature": 1.0,
            "init": None, "padding_mode": "replicate", "seed": None, "backend": None,
        }  # fmt: skip
        shown += [f"{name}={getattr(self, name)!r}" for name, value in defaults.items() if getattr(self, name) != value]
        return ", ".join(shown)


class PatchAttentionBlock(nn.Module):
    """A residual block: query, key and value by 1×1 convolutions, patch attention, and a projection back.

    The last projection starts at zero, so that a new block changes nothing in a trained network.

    Args:
        channels: of the map that goes in and comes out.
        heads: the channels are split into so many groups, each with its own matches.
        dimensions: spatial ones, 1 to 3.
        attention: arguments of :class:`PatchAttention`.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> import torch
    >>> features = torch.rand(1, 8, 16, 16)
    >>> block = PatchAttentionBlock(8, heads=2, patch_size=3)
    >>> block(features).equal(features)
    True
    """

    def __init__(self, channels: int, heads: int = 1, *, dimensions: int = 2, **attention: object) -> None:
        super().__init__()
        checks.check_count("channels", channels, 1)
        checks.check_count("heads", heads, 1)
        if channels % heads:
            raise ValueError(f"heads must divide channels, got {heads} heads for {channels} channels")
        if dimensions not in (1, 2, 3):
            raise ValueError(f"dimensions must be 1, 2 or 3, got {dimensions!r}")
        convolution: type[nn.Conv1d] | type[nn.Conv2d] | type[nn.Conv3d]
        convolution = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[dimensions - 1]
        self.heads = heads
        self.query = convolution(channels, channels, 1)
        self.key = convolution(channels, channels, 1)
        self.value = convolution(channels, channels, 1)
        self.attention = PatchAttention(**attention)  # type: ignore[arg-type]
        checks.check_patch_size(self.attention.patch_size, dimensions)
        self.out = convolution(channels, channels, 1)
        nn.init.zeros_(self.out.weight)
        if self.out.bias is not None:
            nn.init.zeros_(self.out.bias)

    def forward(
        self,
        x: Tensor,
        reference: Tensor | None = None,
        key_mask: Tensor | None = None,
        query_mask: Tensor | None = None,
    ) -> Tensor:
        """``x`` attends to ``reference``, or to itself; both ``(B, channels, *S)``."""
        reference = x if reference is None else reference
        attended = self.attention(
            self._split(self.query(x)),
            self._split(self.key(reference)),
            self._split(self.value(reference)),
            key_mask=None if key_mask is None else torch.cat([key_mask] * self.heads),
            query_mask=None if query_mask is None else torch.cat([query_mask] * self.heads),
        )
        out: Tensor = x + self.out(torch.cat(attended.chunk(self.heads), 1))
        return out

    def _split(self, x: Tensor) -> Tensor:
        """Heads as batch elements; chunks rather than a view, which inductor cannot order the strides of."""
        return torch.cat(x.chunk(self.heads, 1))
