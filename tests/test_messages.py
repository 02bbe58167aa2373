import pytest
import torch

from psal.messages import describe


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("seed must be\n  an int"), "seed must be an int"),
        (FileNotFoundError("no such file"), "no such file"),
        (KeyError("size"), "KeyError: 'size'"),
        (ValueError(), "ValueError: "),
        (MemoryError(), "there is not enough memory: make the picture smaller, or close other programs"),
        (
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB."),
            "there is not enough memory on the device: make the picture smaller, or compute on the CPU",
        ),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: not enough memory: you tried to allocate"),
            "there is not enough memory: make the picture smaller, or close other programs",
        ),
    ],
)
def test_an_error_becomes_one_line(error: Exception, message: str) -> None:
    assert describe(error) == message
