"""How close searches come to the exact matches, on a sample of the queries: comparing all of them takes too long."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from psal.functional import exact_match
from psal.matches import Matches, match_quality


def cost_ratios(
    query: Tensor, key: Tensor, searches: Mapping[str, Callable[[], Matches]], stride: int
) -> dict[str, float]:
    """Return the mean cost of each search's best matches over that of the exact ones, with the default patches.

    Args:
        query: ``(1, C, H, W)``.
        key: ``(1, C, H', W')``.
        searches: each finds matches of all queries.
        stride: every ``stride``-th query along each axis is compared.
    """
    sample = torch.zeros_like(query[:, :1], dtype=torch.bool)
    sample[..., ::stride, ::stride] = True
    exact = exact_match(query, key, neighbors=1, query_mask=sample)
    found = {}
    for name, search in searches.items():
        index, score = search()
        best = Matches(index[:, :1].where(sample, -1), score[:, :1].where(sample, -torch.inf))
        found[name] = match_quality(best, exact).cost_ratio
    return found
