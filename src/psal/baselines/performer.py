"""Performer (Choromanski et al. 2020): softmax attention estimated by positive orthogonal random features, FAVOR+."""

import math
from collections.abc import Sequence
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from psal import arguments
from psal.baselines.patches import PatchLayer, map_of, pixels_of, recomputed
from psal.ops.random import draw_seed


class PerformerAttention(PatchLayer):
    """Attention by the dot product, its softmax estimated without any pair's product.

    With x = patch / √temperature and ω normal, the mean of exp(ω·q − ‖q‖²/2) exp(ω·k − ‖k‖²/2) is exp(q·k).

    Args:
        patch_size: odd side of the patches that are compared, an int or two.
        features: M, how many ω; None is d · log d for patches of d numbers.
        temperature: softmax temperature; None is √d, as in transformers.
        seed: of the ω, which stay the same for the life of the layer; None draws one from torch's generator.
        padding_mode: how a map goes on beyond its border: "replicate", "reflect" or "zeros".

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> import torch
    >>> image, reference = torch.rand(1, 3, 8, 8), torch.rand(1, 3, 9, 7)
    >>> PerformerAttention(patch_size=3, features=64)(image, reference, reference).shape
    torch.Size([1, 3, 8, 8])
    """

    def __init__(
        self,
        patch_size: int | Sequence[int] = 7,
        *,
        features: int | None = None,
        temperature: float | None = None,
        seed: int | None = None,
        padding_mode: str = "replicate",
    ) -> None:
        super().__init__(patch_size, padding_mode)
        if features is not None:
            arguments.check_count("features", features, 1)
        if temperature is not None:
            arguments.check_temperature(temperature)
        arguments.check_seed(seed)
        self.features = features
        self.temperature = temperature
        self.seed = int(draw_seed(seed))

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        queries, keys = self.patches(query), self.patches(key)
        dimension = keys.dimension
        features = self.features or max(1, int(dimension * math.log(dimension)))
        temperature = self.temperature or math.sqrt(dimension)
        projection = orthogonal_features(dimension, features, self.seed).to(query)
        counted = F.pad(value, (0, 0, 0, 0, 0, 1), value=1.0)  # a channel of ones sums up the weights

        def exponents(patches: Tensor) -> Tensor:  # [B, n, M]
            x = patches / math.sqrt(temperature)
            return x @ projection.mT - x.square().sum(-1, keepdim=True) / 2

        def sum_of(rows: slice, top: Tensor) -> Tensor:  # [B, M, Cv + 1]
            return (exponents(keys.band(rows)) - top).exp().mT @ pixels_of(counted[:, :, rows])

        def weigh(rows: slice, total: Tensor) -> Tensor:  # [B, n, Cv]
            exponent = exponents(queries.band(rows))
            weighted = (exponent - exponent.detach().amax(-1, keepdim=True)).exp() @ total
            return weighted[..., :-1] / weighted[..., -1:]

        # Whatever is taken off all exponents cancels out: their maximum is, so that none overflows.
        bands = list(keys.bands(features + dimension))
        with torch.no_grad():
            top = torch.stack([exponents(keys.band(rows)).amax((1, 2), keepdim=True) for rows in bands]).amax(0)
        total = torch.stack([recomputed(lambda rows=rows: sum_of(rows, top)) for rows in bands]).sum(0)
        weighed = [
            recomputed(lambda t, rows=rows: weigh(rows, t), total) for rows in queries.bands(features + dimension)
        ]
        return map_of(torch.cat(weighed, 1), query.shape[2:])


@lru_cache(maxsize=4)
def orthogonal_features(dimension: int, count: int, seed: int) -> Tensor:
    """ω ``(count, dimension)`` with the lengths of normal vectors, orthogonal in blocks of as many as dimensions."""
    generator = torch.Generator().manual_seed(seed)
    normal = torch.randn(math.ceil(count / dimension), dimension, dimension, generator=generator, dtype=torch.float64)
    frames, triangle = torch.linalg.qr(normal)
    frames = frames * triangle.diagonal(dim1=1, dim2=2).sign()[:, None]  # or else no frame would point some ways
    directions: Tensor = frames.flatten(0, 1)[:count]
    lengths: Tensor = torch.randn(count, dimension, generator=generator, dtype=torch.float64).norm(dim=1, keepdim=True)
    return directions * lengths
