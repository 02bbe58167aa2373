"""The Triton kernels on CPU tensors: Triton's interpreter runs them, and a mode sends the ops to them."""

import os
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

pytest.importorskip("triton", reason="Triton is not installed: pip install triton")
assert os.environ.get("TRITON_INTERPRET") == "1", "tests/conftest.py sets it, before Triton is imported"

KERNELS = {"search", "score", "score_backward", "attend", "attend_backward"}


class TritonKernels(TorchDispatchMode):
    """Inside a ``with`` block, psal's ops on CPU tensors run what CUDA tensors would: the registered entry points."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self, op: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if op.namespace == "psal" and op._schema.name.removeprefix("psal::") in KERNELS:
            return op.redispatch(torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA), *args, **(kwargs or {}))
        return op(*args, **(kwargs or {}))
