"""Which backend runs a call, and what is said about it."""

import logging
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from support.maps import normal_map
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

import psal
from psal.ops import backends
from psal.ops.backends import choose_backend

needs_triton = pytest.mark.skipif(backends.TRITON_OBSTACLE is not None, reason=f"{backends.TRITON_OBSTACLE}")


@pytest.fixture
def fake() -> Iterator[FakeTensorMode]:
    with FakeTensorMode() as mode:
        yield mode


@pytest.fixture
def unwarned(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has not warned yet."""
    monkeypatch.setattr(backends, "_warned", set())


def a_map(device: str) -> Tensor:
    return torch.empty(1, 3, 9, 8, device=device)


def test_all_backends_are_listed_with_a_reason() -> None:
    listed = psal.backends()
    assert [status.name for status in listed] == ["native", "triton", "reference"]
    assert [status.available for status in listed] == [True, torch.cuda.is_available(), True]
    assert all(status.reason for status in listed)


def test_tensors_on_the_cpu_take_the_native_kernels() -> None:
    assert choose_backend(a_map("cpu")) == "native"
    assert choose_backend(a_map("meta")) == "native"


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.parametrize(
    ("version", "too_old"), [("2.9.1", True), ("3.5.0+rocm6.4", True), ("3.6.0", False), ("3.10.0", False)]
)
def test_a_triton_that_is_too_old_is_named_and_later_ones_are_not(version: str, too_old: bool, tmp_path: Path) -> None:
    """Its version is that of the metadata found first."""
    metadata = tmp_path / f"triton-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: triton\nVersion: {version}\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    code = "import psal; print(psal.backends()[1].reason)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    expected = f"Triton {version} is too old: 3.6 or later is needed"
    assert (done.stdout.strip() == expected) == too_old


@needs_triton
def test_tensors_on_cuda_take_triton(fake: FakeTensorMode) -> None:
    assert choose_backend(a_map("cuda"), neighbors=32) == "triton"


@needs_triton
@pytest.mark.usefixtures("unwarned")
def test_more_neighbors_than_the_kernels_take_run_on_the_reference(fake: FakeTensorMode) -> None:
    with pytest.warns(UserWarning, match="backend 'triton' cannot run more than 32 neighbors"):
        assert choose_backend(a_map("cuda"), neighbors=33) == "reference"


@pytest.mark.usefixtures("unwarned")
def test_devices_without_kernels_take_the_reference_and_warn_once(fake: FakeTensorMode) -> None:
    with pytest.warns(UserWarning, match="many times slower than its kernels: backend 'native' cannot run tensors on"):
        assert choose_backend(a_map("xpu")) == "reference"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert choose_backend(a_map("xpu")) == "reference"
        assert choose_backend(a_map("xpu"), backend="reference") == "reference"


@pytest.mark.usefixtures("unwarned")
def test_a_callable_similarity_takes_the_reference_without_a_warning() -> None:
    image = normal_map(1, 2, 4, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        psal.patch_match(image, image, patch_size=1, similarity=lambda q, k: (q * k).sum(-1), iterations=0)


def test_the_log_says_why_a_backend_was_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    image = normal_map(1, 2, 4, 5)
    with caplog.at_level(logging.DEBUG, logger="psal"):
        psal.patch_match(image, image, patch_size=1, similarity=lambda q, k: (q * k).sum(-1), iterations=0)
    assert "backend native was passed over: it cannot run a callable similarity" in caplog.messages


@pytest.mark.parametrize(
    ("backend", "device", "message"),
    [
        ("native", "cuda", "backend='native' cannot run tensors on cuda"),
        ("triton", "cpu", "backend='triton' cannot run tensors on cpu: use backend='reference' or None"),
    ],
)
def test_a_backend_that_cannot_run_is_refused(fake: FakeTensorMode, backend: str, device: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        choose_backend(a_map(device), backend=backend)
