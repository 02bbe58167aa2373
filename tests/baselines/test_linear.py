import pytest
from support.attention import NAMES, problem, softmax_attention
from support.maps import dense_patches, gradients
from support.tolerances import assert_all_close
from torch import Tensor, nn

from psal.baselines import LinearAttention


def test_linear_attention_is_its_quadratic_form(monkeypatch: pytest.MonkeyPatch) -> None:
    def quadratic(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        q, k = (nn.functional.elu(dense_patches(x, 3)) + 1 for x in (query, key))
        return softmax_attention((q @ k.mT).log(), value, (9, 13))

    inputs = problem()
    monkeypatch.setattr("psal.baselines.patches.CHUNK_ELEMENTS", 500)  # several bands
    assert_all_close(gradients(LinearAttention(3), *inputs), gradients(quadratic, *inputs), NAMES)
