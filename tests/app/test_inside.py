"""The weights that *Look inside* shows are those of the layer."""

import pytest
import torch

import psal
from psal.app.inside import attended_places


@pytest.mark.parametrize("aggregate", [False, True])
@pytest.mark.parametrize("pixel", [(0, 0), (8, 10), (16, 20), (3, 20)])
def test_weights_times_values_are_the_layers_output(pixel: tuple[int, int], aggregate: bool) -> None:
    query, key, value = torch.rand(1, 3, 17, 21), torch.rand(1, 3, 13, 19), torch.rand(1, 2, 13, 19)
    matches = psal.patch_match(query, key, patch_size=5, neighbors=4, seed=0)
    if aggregate:
        out = psal.aggregate(matches, value, patch_size=5, temperature=0.7)
    else:
        out = psal.attend(matches, value, temperature=0.7)
    places = attended_places(
        matches.index[0], matches.score[0], pixel, (13, 19), patch_size=5, aggregate=aggregate, temperature=0.7
    )
    attended = sum((place.weight * value[0, :, place.row, place.column] for place in places), torch.zeros(2))
    torch.testing.assert_close(attended, out[0, :, pixel[0], pixel[1]])
    weights = [place.weight for place in places]
    assert sum(weights) == pytest.approx(1)
    assert weights == sorted(weights, reverse=True)
    assert len({place[:2] for place in places}) == len(places)
    assert aggregate or len(places) == 4


def test_a_query_left_out_attends_to_nothing() -> None:
    index, score = torch.full((2, 5, 5), -1), torch.full((2, 5, 5), -torch.inf)
    assert attended_places(index, score, (2, 2), (5, 5), patch_size=3, aggregate=True, temperature=1.0) == []
