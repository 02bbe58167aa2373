import math

import pytest
import torch
from support.attention import problem
from support.tolerances import RELATIVE, assert_same_bits

from psal.baselines import FullAttention, PerformerAttention
from psal.baselines.performer import orthogonal_features


def test_the_error_of_performer_falls_with_the_number_of_features() -> None:
    """Guards against frames that are not uniform, as QR returns them: the error then stops falling."""
    inputs = problem(batch=1, scale=0.4)
    expected = FullAttention(3, similarity="dot", temperature=math.sqrt(18))(*inputs)

    def error(features: int) -> float:
        layers = [PerformerAttention(2, 3, features=features, seed=seed) for seed in range(8)]
        return float(torch.stack([(layer(*inputs) - expected).square().mean() for layer in layers]).mean().sqrt())

    errors = [error(features) for features in (16, 128, 1024, 8192)]
    assert errors[0] > 2 * errors[1] > 4 * errors[2] > 8 * errors[3]  # asymptotically by √8 each


def test_features_of_performer_are_orthogonal_in_blocks() -> None:
    features = orthogonal_features(6, 15, seed=0)
    assert features.shape == (15, 6)
    for block in (features[:6], features[6:12], features[12:]):
        products = block @ block.T
        assert (products - products.diag().diag()).abs().max() < RELATIVE[torch.float32] * products.max()
    assert features.norm(dim=1).unique().numel() == 15


def test_a_loaded_performer_equals_the_saved_one() -> None:
    """Guards against drawing new features when a trained network is loaded."""
    inputs = problem()
    saved, loaded = PerformerAttention(2, 3), PerformerAttention(2, 3)
    loaded.load_state_dict(saved.state_dict())
    assert_same_bits(loaded(*inputs), saved(*inputs))
    with pytest.raises(ValueError, match="query must have 2 channels"):
        saved(*(x[:, :1] for x in inputs))
