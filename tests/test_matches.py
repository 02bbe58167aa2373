import io
import math

import pytest
import torch
from support.maps import normal_map

import psal


def matches(index: list[int], score: list[float]) -> psal.Matches:
    """Best matches of a row of queries."""
    return psal.Matches(torch.tensor(index)[None, None], torch.tensor(score, dtype=torch.float64)[None, None])


def test_matches_are_loaded_as_weights_are() -> None:
    image, file = torch.rand(1, 2, 6, 5), io.BytesIO()
    matches = psal.patch_match(image, image)
    torch.save({"matches": matches}, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=True)["matches"]
    assert isinstance(loaded, psal.Matches)
    assert loaded.index.equal(matches.index)


def test_exact_matches_lose_nothing() -> None:
    exact = matches([3, 1], [-2.0, -4.0])
    assert psal.match_quality(exact, exact) == psal.MatchQuality(cost_ratio=1.0, best_found=1.0)


def test_the_cost_is_the_mean_distance_over_the_exact_one() -> None:
    quality = psal.match_quality(matches([3, 0], [-2.0, -7.0]), matches([3, 1], [-2.0, -4.0]))
    assert quality == psal.MatchQuality(cost_ratio=1.5, best_found=0.5)


def test_the_cost_of_cosine_is_one_minus_the_score() -> None:
    quality = psal.match_quality(matches([0], [0.5]), matches([1], [0.75]), similarity="cosine")
    assert quality == psal.MatchQuality(cost_ratio=2.0, best_found=0.0)


def test_the_cost_of_dot_is_the_ratio_of_scores() -> None:
    quality = psal.match_quality(matches([0, 1], [1.0, 3.0]), matches([2, 1], [3.0, 3.0]), similarity="dot")
    assert quality == psal.MatchQuality(cost_ratio=1.5, best_found=0.5)


def test_another_index_with_the_same_score_counts_as_found() -> None:
    assert psal.match_quality(matches([0], [-1.0]), matches([1], [-1.0])).best_found == 1.0


def test_a_perfect_match_costs_nothing() -> None:
    assert psal.match_quality(matches([0], [0.0]), matches([0], [0.0])).cost_ratio == 1.0


def test_missing_a_perfect_match_costs_infinitely_more() -> None:
    assert psal.match_quality(matches([1], [-1.0]), matches([0], [0.0])).cost_ratio == math.inf


def test_masked_queries_do_not_count() -> None:
    found = matches([3, -1, 0], [-2.0, -math.inf, -4.0])
    exact = matches([3, -1, 1], [-2.0, -math.inf, -2.0])
    assert psal.match_quality(found, exact) == psal.MatchQuality(cost_ratio=1.5, best_found=0.5)


def test_only_the_best_of_several_neighbors_counts() -> None:
    image = normal_map(1, 2, 6, 5)
    found, exact = (psal.exact_match(image, image, neighbors=k, patch_size=3) for k in (1, 4))
    assert psal.match_quality(found, exact) == psal.MatchQuality(cost_ratio=1.0, best_found=1.0)


@pytest.mark.parametrize(
    ("found", "exact", "similarity", "text"),
    [
        (matches([0, 1], [0.0, 0.0]), matches([0], [0.0]), "l2", r"have the same queries, got \(1, 2\) and \(1, 1\)"),
        (matches([-1], [-math.inf]), matches([0], [0.0]), "l2", "must have the same query_mask"),
        (matches([-1], [-math.inf]), matches([-1], [-math.inf]), "l2", "query_mask leaves no query"),
        (matches([0], [0.0]), matches([0], [0.0]), "l1", "similarity must be 'l2', 'dot' or 'cosine', got 'l1'"),
    ],
)
def test_matches_of_different_queries_are_refused(
    found: psal.Matches, exact: psal.Matches, similarity: str, text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        psal.match_quality(found, exact, similarity=similarity)
