import math

import pytest
import torch
from support.attention import NAMES, problem, softmax_attention
from support.maps import dense_scores, gradients, normal_map
from support.tolerances import assert_all_close, assert_close

from psal.baselines import FullAttention, LocalAttention
from psal.options import SIMILARITIES


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_local_attention_with_a_window_over_everything_is_full_attention(similarity: str) -> None:
    inputs = problem()
    local = LocalAttention(3, window=30, similarity=similarity, temperature=0.7)
    full = FullAttention(3, similarity=similarity, temperature=0.7)
    assert_all_close(gradients(local, *inputs), gradients(full, *inputs), NAMES)


@pytest.mark.parametrize("window", [1, 4, 7])
def test_local_attention_is_full_attention_masked_to_the_window(window: int) -> None:
    query = normal_map(1, 2, 19, 37, dtype=torch.float64, seed=1)
    key, value = (normal_map(1, c, 19, 37, dtype=torch.float64, seed=c) for c in (2, 3))
    row, column = (x.flatten() for x in torch.meshgrid(torch.arange(19), torch.arange(37), indexing="ij"))
    down, right = row - row[:, None], column - column[:, None]
    low, high = -(window // 2), window - window // 2
    near = (down >= low) & (down < high) & (right >= low) & (right < high)
    expected = softmax_attention(dense_scores(query, key, 3, "l2").masked_fill(~near, -math.inf), value, (19, 37))
    assert_close(LocalAttention(3, window=window)(query, key, value), expected)
