"""What torch sees of the Triton ops, on tensors of a device that need not be there."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from support.interpreter import KERNELS, TritonKernels
from support.maps import integer_map, normal_map
from support.tolerances import assert_same_bits
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

import psal
from psal.options import SearchOptions


@pytest.fixture
def fake_cuda() -> Iterator[FakeTensorMode]:
    with FakeTensorMode() as mode:
        yield mode


def cuda_map(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.empty(shape, device="cuda", dtype=dtype)


@pytest.mark.parametrize("op", sorted(KERNELS))
def test_every_op_has_a_kernel_for_cuda(op: str) -> None:
    assert torch._C._dispatch_has_kernel_for_dispatch_key(f"psal::{op}", "CUDA")


def test_the_layer_can_be_traced_for_cuda(fake_cuda: FakeTensorMode) -> None:
    def layer(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return psal.patch_attention(query, key, value, aggregate=True, seed=1)

    graph = make_fx(layer, tracing_mode="fake")(cuda_map(1, 3, 9, 8), cuda_map(1, 3, 7, 6), cuda_map(1, 5, 7, 6))
    called = {str(node.target) for node in graph.graph.nodes}
    assert {"psal.search.default", "psal.attend.default"} <= called


def test_the_layer_can_be_exported_for_cuda(fake_cuda: FakeTensorMode) -> None:
    layer = psal.PatchAttention(patch_size=3, seed=1)
    inputs = cuda_map(1, 3, 9, 8), cuda_map(1, 3, 7, 6), cuda_map(1, 5, 7, 6)
    exported = torch.export.export(layer, inputs)
    called = {str(node.target) for node in exported.graph.nodes}
    assert {"psal.search.default", "psal.attend.default"} <= called


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_results_on_cuda_have_the_type_of_the_maps(fake_cuda: FakeTensorMode, dtype: torch.dtype) -> None:
    query, key, value = (cuda_map(1, 3, *size, dtype=dtype) for size in ((9, 8), (7, 6), (7, 6)))
    out, matches = psal.patch_attention(query, key, value, return_matches=True)
    assert (out.dtype, out.device.type, out.shape) == (dtype, "cuda", (1, 3, 9, 8))
    assert (matches.score.dtype, matches.index.dtype) == (dtype, torch.int64)


def test_half_types_reach_the_kernels_as_they_are(fake_cuda: FakeTensorMode) -> None:
    maps = [cuda_map(1, 3, 9, 8, dtype=torch.float16) for _ in range(3)]
    graph = make_fx(lambda q, k, v: psal.patch_attention(q, k, v, seed=1), tracing_mode="fake")(*maps)
    (search,) = (node for node in graph.graph.nodes if str(node.target) == "psal.search.default")
    assert search.args[0].meta["val"].dtype == torch.float16


def test_fake_outputs_have_the_shapes_types_and_strides_of_real_ones() -> None:
    query, key = integer_map(1, 3, 5, 4).half(), integer_map(1, 3, 4, 6, seed=1).half()
    rest = [3, 3], 2, 0, 0, 0, 0
    search, attend = torch.ops.psal.search, torch.ops.psal.attend

    def run(query: Tensor, key: Tensor) -> list[Tensor]:
        index, score = search(query, key, None, None, None, torch.zeros((), dtype=torch.int64), *rest)
        out, log_mass = attend(index, score, key, [1, 1], 1.0)
        grads = torch.ops.psal.attend_backward(out, index, score, key, out, log_mass, [1, 1], 1.0)
        back = torch.ops.psal.score_backward(grads[0], query, key, index, score, [3, 3], 0, 0)
        return [index, score, out, log_mass, *grads, *back]

    with TritonKernels():
        real = run(query, key)
    with FakeTensorMode() as mode:
        fake = run(mode.from_tensor(query), mode.from_tensor(key))
    for a, b in zip(real, fake, strict=True):
        assert (a.shape, a.dtype, a.stride()) == (b.shape, b.dtype, b.stride())


def test_vmap_over_the_kernels_equals_a_loop() -> None:
    queries, key = integer_map(2, 1, 3, 5, 4), integer_map(1, 3, 4, 6, seed=1)

    def scores(query: Tensor) -> Tensor:
        index = torch.arange(20).reshape(1, 1, 5, 4)
        return psal.ops.score(query, key, index, SearchOptions(3, backend="native"))

    with TritonKernels():
        mapped = torch.vmap(scores)(queries)
    assert_same_bits(mapped, torch.stack([scores(query) for query in queries]))


def test_the_search_reads_strided_maps() -> None:
    query, key = normal_map(1, 3, 6, 5), normal_map(1, 3, 4, 7, seed=1)
    arguments: dict[str, Any] = {"patch_size": 3, "neighbors": 1, "init": "random", "iterations": 0, "seed": 2}
    with TritonKernels():
        plain = psal.patch_match(query, key, **arguments)
        strided = psal.patch_match(query.to(memory_format=torch.channels_last), key.mT.contiguous().mT, **arguments)
    assert_same_bits(strided.index, plain.index)
    assert_same_bits(strided.score, plain.score)
