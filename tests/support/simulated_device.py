"""A CUDA device that is not there: its tensors say they are on it, and keep their values on the CPU.

Operations between tensors of both devices fail, and so does reading values without copying them to the CPU. The kernels
of the CPU compute, so that results have the same bits.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

DEVICE = torch.device("cuda", 0)
COPIES = {torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default}  # from one device to another


class DeviceTensor(Tensor):
    """A tensor of the simulated device. Torch's own code, which would ask for a driver, sees one of the CPU."""

    content: Tensor  # the values, on the CPU
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, values: Tensor) -> "DeviceTensor":
        made: DeviceTensor = Tensor._make_wrapper_subclass(
            cls, values.shape, strides=values.stride(), storage_offset=values.storage_offset(), dtype=values.dtype
        )
        made.content = values
        return made

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return DEVICE

    @property
    def is_cuda(self) -> bool:  # type: ignore[override]
        return True

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, op: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return _run(op, args, kwargs or {})


class SimulatedDevice(TorchDispatchMode):
    """Inside a ``with`` block, torch can put tensors on the device.

    Attributes:
        searches: how often psal's search ran there.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.searches = 0

    def __torch_dispatch__(
        self, op: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        on_device = any(isinstance(x, DeviceTensor) for x in tree_flatten((args, kwargs))[0])
        self.searches += on_device and op._schema.name == "psal::search"
        return _run(op, args, kwargs or {})


def _run(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operation on the CPU; its results are on the device if its arguments are, or if it says so."""
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
    inner = {id(x.content): x for x in tensors if isinstance(x, DeviceTensor)}
    if inner and op not in COPIES and any(not isinstance(x, DeviceTensor) and x.ndim for x in tensors):
        raise RuntimeError(f"{op}: tensors on {DEVICE} and on the CPU")
    target = kwargs.get("device")
    on_device = bool(inner) if target is None else torch.device(target).type == "cuda"
    if op is torch.ops.aten.copy_.default:
        on_device = isinstance(args[0], DeviceTensor)
    kwargs = kwargs | ({} if target is None else {"device": torch.device("cpu")})
    args, kwargs = tree_map(lambda x: x.content if isinstance(x, DeviceTensor) else x, (args, kwargs))
    made = op(*args, **kwargs)
    if not on_device:
        return made
    return tree_map(lambda x: _on_device(x, inner) if isinstance(x, Tensor) else x, made)


def _on_device(x: Tensor, inner: dict[int, DeviceTensor]) -> DeviceTensor:
    """The argument that an operation changed in place, or a new tensor."""
    return inner[id(x)] if id(x) in inner else DeviceTensor(x)


class _Copies(TorchFunctionMode):
    """Inside a ``with`` block, copies from the device to the CPU are made: torch takes both for the CPU."""

    def __torch_function__(
        self, function: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if not (args and isinstance(args[0], DeviceTensor)):
            args, kwargs = tree_map(_numbered, (args, kwargs))
            return function(*args, **kwargs)
        if function is Tensor.cpu:
            return args[0].content.clone()
        if function is Tensor.new_tensor:
            return DeviceTensor(args[0].content.new_tensor(*args[1:], **kwargs))
        if function is Tensor.to:
            given = [
                x for like in args[1:] for x in ((like.device, like.dtype) if isinstance(like, Tensor) else (like,))
            ]
            to_cpu = any(str(x) == "cpu" for x in (*given, *kwargs.values()))
            others: list[Any] = [x for x in given if not isinstance(x, str | torch.device)]
            values = args[0].content.to(*others) if others else args[0].content
            return values.clone() if to_cpu else DeviceTensor(values)
        return function(*args, **kwargs)


def _numbered(x: Any) -> Any:
    """Number a CUDA device: without a number, torch would ask the driver which one is current."""
    return DEVICE if isinstance(x, torch.device) and x.type == "cuda" else x


@contextmanager
def simulated_device(monkeypatch: pytest.MonkeyPatch, memory: float = 8e9) -> Iterator[SimulatedDevice]:
    """Let torch find one CUDA device, with that much memory."""
    monkeypatch.setattr(torch.cuda, "_lazy_init", lambda: None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device=None: (memory, memory))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device=None: 0)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device=None: 0)
    replaced = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(True)  # parameters change their class
    try:
        with _Copies(), SimulatedDevice() as device:
            yield device
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(replaced)
