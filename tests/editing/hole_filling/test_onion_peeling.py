import torch
import torch.nn.functional as F
from support.holes import box_mask

from psal.editing.hole_filling.hole_geometry import PATCH_RADIUS, PATCH_SIZE
from psal.editing.hole_filling.level_fill import start_level
from psal.editing.hole_filling.masked_pyramid import build_pyramid
from psal.editing.hole_filling.onion_peeling import best_sampled_keys


def test_sampled_keys_have_the_smallest_weighted_distance() -> None:
    generator = torch.Generator().manual_seed(0)
    color, hole = torch.rand(3, 43, 51, generator=generator), box_mask(43, 51, (14, 24, 17, 32))
    fill = start_level(build_pyramid(color, hole, 1)[0])
    weight = torch.rand(fill.hole.shape, generator=generator)
    found = best_sampled_keys(fill, weight, fill.queries, seed=0)  # the sample is larger than the number of keys

    def patches(x: torch.Tensor) -> torch.Tensor:  # [C · p², positions]
        return F.unfold(x[None], PATCH_SIZE, padding=PATCH_RADIUS)[0]

    queries = fill.queries.flatten()
    q, w = patches(fill.channels)[:, queries].T, patches(weight[None] * fill.atlas.inside)[:, queries].T
    keys = torch.nonzero(fill.valid_keys.flatten())[:, 0]
    k = patches(fill.keys[:-1])[:, keys].T
    w = w.repeat(1, len(fill.channels))
    best = torch.stack([(wi * (qi - k).square()).sum(1).argmin() for qi, wi in zip(q, w, strict=True)])
    assert (found == keys[best]).float().mean() > 0.99  # but for ties within rounding
