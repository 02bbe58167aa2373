"""Matches, the result of a search, and a measure of their quality."""

from typing import NamedTuple

import torch
from torch import Tensor


class Matches(NamedTuple):
    """The k best keys of every query.

    Attributes:
        index: int64 ``(B, k, *Sq)``, flat positions in the key's grid, all different; −1 for a masked query.
        score: ``(B, k, *Sq)``, best first; carries gradients to query and key.
    """

    index: Tensor  # type: ignore[assignment]  # hides tuple.index, which is not needed here
    score: Tensor


torch.serialization.add_safe_globals([Matches])  # torch.load(weights_only=True) reads them


def best_first(matches: Matches) -> Matches:
    """Sort the matches of each query by score, stably and with NaN last.

    Scores of one key may differ in their last bits with the shape of the tensors they were computed in, so matches that
    were sorted by other scores may be out of order by those bits.
    """
    rank = matches.score.detach().nan_to_num(nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)
    order = rank.argsort(dim=1, descending=True, stable=True)
    return Matches(matches.index.gather(1, order), matches.score.gather(1, order))


class MatchQuality(NamedTuple):
    """How close matches come to the exact ones; see :func:`match_quality`.

    Attributes:
        cost_ratio: mean cost of the best match over that of the exact one; 1 when nothing is lost.
        best_found: fraction of queries whose best match is as good as the exact one, 0..1.
    """

    cost_ratio: float
    best_found: float


def match_quality(matches: Matches, exact: Matches, *, similarity: str = "l2") -> MatchQuality:
    """Compare found matches with those of :func:`psal.exact_match`.

    Args:
        matches: result of :func:`psal.patch_match`.
        exact: result of :func:`psal.exact_match` for the same query, key and patch size. Only the best match of each
            query counts, so the two may differ in k.
        similarity: the similarity that the scores measure. The cost is the squared distance for "l2" and one minus the
            score for "cosine". "dot" has no cost that is zero for a perfect match: ``cost_ratio`` is then the mean
            exact score over the mean score.

    Returns:
        :class:`MatchQuality`; masked queries don't count.

    Raises:
        ValueError: if the two have different queries or query masks.

    >>> import psal
    >>> image = torch.rand(1, 3, 16, 16)
    >>> psal.match_quality(psal.patch_match(image, image), psal.exact_match(image, image)).best_found
    1.0
    """
    if similarity not in ("l2", "cosine", "dot"):
        raise ValueError(f"similarity must be 'l2', 'dot' or 'cosine', got {similarity!r}")
    index, best_index = matches.index[:, 0], exact.index[:, 0]
    if index.shape != best_index.shape:
        raise ValueError(
            f"matches and exact must have the same queries, got {tuple(index.shape)} and {tuple(best_index.shape)}"
        )
    active = index >= 0
    if not active.equal(best_index >= 0):
        raise ValueError("matches and exact must have the same query_mask")
    if not active.any():
        raise ValueError("query_mask leaves no query to compare")
    score = matches.score[:, 0].detach()[active].double()
    best = exact.score[:, 0].detach()[active].double()
    rounding = 16 * torch.finfo(matches.score.dtype).eps * best.abs()
    found = (index == best_index)[active] | (score >= best - rounding)
    if similarity == "dot":
        ratio = best.mean() / score.mean()
    else:
        perfect = 1.0 if similarity == "cosine" else 0.0
        cost, best_cost = (perfect - score).mean(), (perfect - best).mean()
        ratio = torch.ones(()) if cost == best_cost else cost / best_cost
    return MatchQuality(cost_ratio=ratio.item(), best_found=found.double().mean().item())
