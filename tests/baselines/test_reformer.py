import pytest
import torch
from support.attention import NAMES, problem
from support.maps import gradients
from support.tolerances import assert_all_close, assert_close, assert_same_bits

from psal.baselines import FullAttention, ReformerAttention
from psal.options import SIMILARITIES


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("rounds", [1, 3])
def test_reformer_with_everything_in_one_bucket_is_full_attention(similarity: str, rounds: int) -> None:
    inputs = problem()
    reformer = ReformerAttention(
        3, rounds=rounds, buckets=1, chunk_size=200, similarity=similarity, temperature=0.7, seed=0
    )
    full = FullAttention(3, similarity=similarity, temperature=0.7)
    assert_all_close(gradients(reformer, *inputs), gradients(full, *inputs), NAMES)


def test_reformer_attends_only_to_keys_of_the_query_s_bucket() -> None:
    """Patches of two directions: the values of keys of the other direction must not reach the output."""
    query = torch.where(torch.arange(12) % 2 == 0, 1.0, -1.0).expand(1, 1, 10, 12)
    key = torch.where(torch.arange(8) < 4, 1.0, -1.0).expand(1, 1, 10, 8)
    layer = ReformerAttention(1, rounds=1, buckets=2, chunk_size=300, temperature=1e3, seed=0)
    assert_same_bits(layer(query, key, key).sign(), query)


def test_reformer_finds_keys_in_adjacent_chunks() -> None:
    query, key, value = problem(batch=1)
    wide = ReformerAttention(3, rounds=1, buckets=1, chunk_size=194, seed=0)(query, key, value)
    parts = ReformerAttention(3, rounds=1, buckets=1, chunk_size=97, seed=0)(query, key, value)
    assert_close(parts, wide)


def test_a_query_without_any_key_in_reach_gets_zero_from_reformer() -> None:
    """One key and 117 queries in chunks of two: the key is second in the only bucket, so few queries see it."""
    query, key, value = (x[..., :1, :1] if i else x for i, x in enumerate(problem(batch=1)))
    out = ReformerAttention(3, rounds=1, buckets=1, chunk_size=2, seed=0)(query, key, value).flatten(2)
    assert_close(out[..., :3], value.flatten(2).expand(-1, -1, 3))
    assert out[..., 3:].count_nonzero() == 0


def test_reformer_mixes_queries_and_keys_of_a_large_bucket() -> None:
    """Guards against sorting all queries of a bucket before its keys: most would see none."""
    query, key, value = problem()
    out = ReformerAttention(3, rounds=1, buckets=1, chunk_size=8, seed=0)(query, key, value)
    assert out.count_nonzero() == out.numel()
