"""Linear attention (Katharopoulos et al. 2020): a product of positive features in place of the softmax."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from psal.baselines.patches import PatchLayer, map_of, pixels_of, recomputed


class LinearAttention(PatchLayer):
    """Attention with weights φ(q)·φ(k), φ(x) = elu(x) + 1, so that keys and values are summed once for all queries.

    Args:
        patch_size: odd side of the compared patches, an int or one per axis.
        padding_mode: values of a map beyond its border: "replicate", "reflect" or "zeros".

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> import torch
    >>> image, reference = torch.rand(1, 3, 8, 8), torch.rand(1, 3, 9, 7)
    >>> LinearAttention(patch_size=3)(image, reference, reference).shape
    torch.Size([1, 3, 8, 8])
    """

    def __init__(self, patch_size: int | Sequence[int] = 7, *, padding_mode: str = "replicate") -> None:
        super().__init__(patch_size, padding_mode)

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        queries, keys = self.patches(query), self.patches(key)
        counted = F.pad(value, (0, 0, 0, 0, 0, 1), value=1.0)  # a channel of ones accumulates the weights

        def sum_of(rows: slice) -> Tensor:  # [B, d, Cv + 1]
            return _features(keys.band(rows)).mT @ pixels_of(counted[:, :, rows])

        def weigh(rows: slice, total: Tensor) -> Tensor:  # [B, n, Cv]
            weighted = _features(queries.band(rows)) @ total
            return weighted[..., :-1] / weighted[..., -1:]

        parts = (recomputed(lambda rows=rows: sum_of(rows)) for rows in keys.bands(keys.dimension))
        total = torch.stack(list(parts)).sum(0)
        bands = [recomputed(lambda t, rows=rows: weigh(rows, t), total) for rows in queries.bands(queries.dimension)]
        return map_of(torch.cat(bands, 1), query.shape[2:])


def _features(patches: Tensor) -> Tensor:
    return F.elu(patches) + 1
