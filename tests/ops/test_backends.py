"""Which backend runs a call, and what is said about it."""

import logging
import warnings
from collections.abc import Iterator

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
