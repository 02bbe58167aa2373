import pytest
import torch
from support.attention import NAMES, problem, softmax_attention
from support.maps import dense_scores, gradients
from support.tolerances import assert_all_close, assert_close
from torch import Tensor

import psal
from psal.baselines import FullAttention
from psal.baselines.full import METHODS
from psal.options import SIMILARITIES


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("method", METHODS)
def test_full_attention_is_the_softmax_over_all_pairs(method: str, similarity: str) -> None:
    def dense(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return softmax_attention(dense_scores(query, key, 3, similarity) / 0.7, value, (9, 13))

    layer = FullAttention(3, similarity=similarity, temperature=0.7, method=method)
    inputs = problem()
    assert_all_close(gradients(layer, *inputs), gradients(dense, *inputs), NAMES)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_all_methods_of_full_attention_agree(similarity: str) -> None:
    inputs = problem(dtype=torch.float32)
    out = {
        method: gradients(FullAttention((3, 5), similarity=similarity, method=method, stride=2), *inputs)
        for method in METHODS
    }
    for method in METHODS[1:]:
        assert_all_close(out[method], out["materialized"], NAMES)


def test_chunks_do_not_change_full_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = problem()
    whole = gradients(FullAttention(3, method="chunked"), *inputs)
    monkeypatch.setattr("psal.baselines.patches.CHUNK_ELEMENTS", 1)
    assert_all_close(gradients(FullAttention(3, method="chunked"), *inputs), whole, NAMES)


@pytest.mark.parametrize("stride", [1, 2, 3, 20])
def test_stride_selects_every_stride_th_key_along_each_axis(stride: int) -> None:
    query, key, value = problem()
    scores = dense_scores(query, key, 3, "l2").reshape(2, -1, 11, 7)[..., ::stride, ::stride].flatten(2)
    expected = softmax_attention(scores, value[..., ::stride, ::stride], (9, 13))
    assert_close(FullAttention(3, stride=stride)(query, key, value), expected)


def test_full_attention_is_patch_attention_with_all_keys() -> None:
    query, key, value = problem(batch=1)
    every = psal.attend(psal.exact_match(query, key, patch_size=3, neighbors=77), value)
    assert_close(FullAttention(3)(query, key, value), every)
