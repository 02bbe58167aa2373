"""Performer (Choromanski et al. 2020): softmax attention by positive orthogonal random features, FAVOR+."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from psal import checks
from psal.baselines.patches import PatchLayer, map_of, pixels_of, recomputed
from psal.seeds import check_seed, draw_seed


class PerformerAttention(PatchLayer):
    """Dot-product attention whose softmax is estimated without computing the pairs.

    With x = patch / √temperature and ω normal, the mean of exp(ω·q − ‖q‖²/2) exp(ω·k − ‖k‖²/2) is exp(q·k).

    Args:
        channels: number of channels C of query and key; a patch has d = C · patch elements.
        patch_size: odd side of the compared patches, an int or one per axis.
        features: M, the number of vectors ω; None takes d · log d.
        temperature: softmax temperature; None takes √d, as in transformers.
        seed: seed of the ω, which are drawn once per layer; None draws a seed from torch's generator.
        padding_mode: values of a map beyond its border: "replicate", "reflect" or "zeros".

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> import torch
    >>> image, reference = torch.rand(1, 3, 8, 8), torch.rand(1, 3, 9, 7)
    >>> PerformerAttention(3, patch_size=3, features=64)(image, reference, reference).shape
    torch.Size([1, 3, 8, 8])
    """

    def __init__(
        self,
        channels: int,
        patch_size: int | Sequence[int] = 7,
        *,
        features: int | None = None,
        temperature: float | None = None,
        seed: int | None = None,
        padding_mode: str = "replicate",
    ) -> None:
        super().__init__(patch_size, padding_mode)
        checks.check_count("channels", channels, 1)
        if features is not None:
            checks.check_count("features", features, 1)
        if temperature is not None:
            checks.check_temperature(temperature)
        check_seed(seed)
        dimension = channels * math.prod(self.patch_size)
        self.channels = channels
        self.features = features or max(1, int(dimension * math.log(dimension)))
        self.temperature = temperature or math.sqrt(dimension)
        projection = orthogonal_features(dimension, self.features, seed)
        self.register_buffer("projection", projection, persistent=seed is None)
        self.projection: Tensor

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        if query.shape[1] != self.channels:
            raise ValueError(
                f"query must have {self.channels} channels, as the layer was built for, got {query.shape[1]}"
            )
        queries, keys = self.patches(query), self.patches(key)
        projection = self.projection.to(query)
        counted = F.pad(value, (0, 0, 0, 0, 0, 1), value=1.0)  # a channel of ones accumulates the weights

        def exponents(patches: Tensor) -> Tensor:  # [B, n, M]
            x = patches / math.sqrt(self.temperature)
            return x @ projection.mT - x.square().sum(-1, keepdim=True) / 2

        def sum_of(rows: slice, top: Tensor) -> Tensor:  # [B, M, Cv + 1]
            return (exponents(keys.band(rows)) - top).exp().mT @ pixels_of(counted[:, :, rows])

        def weigh(rows: slice, total: Tensor) -> Tensor:  # [B, n, Cv]
            exponent = exponents(queries.band(rows))
            weighted = (exponent - exponent.detach().amax(-1, keepdim=True)).exp() @ total
            return weighted[..., :-1] / weighted[..., -1:]

        # A constant subtracted from all exponents cancels out: take their maximum, so that no exponential overflows.
        row_elements = self.features + keys.dimension
        bands = list(keys.bands(row_elements))
        with torch.no_grad():
            top = torch.stack([exponents(keys.band(rows)).amax((1, 2), keepdim=True) for rows in bands]).amax(0)
        total = torch.stack([recomputed(lambda rows=rows: sum_of(rows, top)) for rows in bands]).sum(0)
        weighed = [recomputed(lambda t, rows=rows: weigh(rows, t), total) for rows in queries.bands(row_elements)]
        return map_of(torch.cat(weighed, 1), query.shape[2:])


def orthogonal_features(dimension: int, count: int, seed: int | None) -> Tensor:
    """Draw ω, float32 ``(count, dimension)``: orthogonal in blocks of ``dimension``, with lengths of normal vectors."""
    generator = torch.Generator().manual_seed(int(draw_seed(None)) if seed is None else seed)
    normal = torch.randn(math.ceil(count / dimension), dimension, dimension, generator=generator, dtype=torch.float64)
    frames, triangle = torch.linalg.qr(normal)
    frames = frames * triangle.diagonal(dim1=1, dim2=2).sign()[:, None]  # QR alone is not uniform over rotations
    directions: Tensor = frames.flatten(0, 1)[:count]
    lengths: Tensor = torch.randn(count, dimension, generator=generator, dtype=torch.float64).norm(dim=1, keepdim=True)
    return (directions * lengths).float()
