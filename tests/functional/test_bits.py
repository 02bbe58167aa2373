"""Determinism: the same bits for the same seed, on any number of threads, for any strides and memory contents."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch
from support.maps import gradients, normal_map, random_mask, random_matches
from support.tolerances import assert_same_bits
from torch import Tensor

import psal

INITS = ("random", "tree", "matches")


def attention(init: str, aggregate: bool, batch: int, *, masked: bool = False) -> list[Tensor]:
    """Matches, output and gradients for maps large enough to be split among threads."""
    sq, sk = (37, 41), (33, 47)
    query, key, value = (
        normal_map(batch, channels, *size, seed=seed)
        for seed, (channels, size) in enumerate([(3, sq), (3, sk), (4, sk)])
    )
    arguments = partial(
        psal.patch_attention,
        patch_size=5,
        init=random_matches(batch, 2, sq, sk) if init == "matches" else init,
        seed=11,
        aggregate=aggregate,
        temperature=30.0,
        key_mask=random_mask(batch, sk, seed=1) if masked else None,
        query_mask=random_mask(batch, sq, seed=2) if masked else None,
    )
    _, matches = arguments(query, key, value, return_matches=True)
    return [*matches, *gradients(arguments, query, key, value)]


@pytest.mark.usefixtures("restored_threads")
@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("aggregate", [False, True])
@pytest.mark.parametrize("batch", [1, 5])
def test_same_seed_same_bits_on_any_thread_count(init: str, aggregate: bool, batch: int) -> None:
    runs = []
    for threads in (1, 2, 4):
        torch.set_num_threads(threads)
        runs.append(attention(init, aggregate, batch, masked=batch == 5))
    for run in runs[1:]:
        for actual, expected in zip(run, runs[0], strict=True):
            assert_same_bits(actual, expected)


@pytest.mark.usefixtures("restored_threads")
@pytest.mark.parametrize(
    ("sq", "sk", "side"),
    [((70, 33), (75, 29), 15), ((31, 21), (67, 19), 5), ((2, 21, 11), (3, 40, 7), 3), ((1031,), (997,), 9)],
    ids=str,
)
def test_gradients_of_many_rows_of_keys_have_the_same_bits_on_any_thread_count(
    sq: tuple[int, ...], sk: tuple[int, ...], side: int
) -> None:
    """The rows of keys are cut into tasks, and the window of a link may reach into those of two."""
    index, score = random_matches(1, 2, sq, sk, dtype=torch.float32)
    value = normal_map(1, 3, *sk)
    runs = []
    for threads in (1, 2, 3, 8):
        torch.set_num_threads(threads)
        runs.append(gradients(lambda s, v: psal.aggregate(psal.Matches(index, s), v, patch_size=side), score, value))
    for run in runs[1:]:
        for actual, expected in zip(run, runs[0], strict=True):
            assert_same_bits(actual, expected)


@pytest.fixture
def busy_cores() -> Iterator[None]:
    """Other processes that keep the cores busy, so that threads are interrupted at any point."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    yield
    for process in others:
        process.kill()
        process.wait()


@pytest.mark.usefixtures("restored_threads", "busy_cores")
@pytest.mark.parametrize("size", [(197, 263), (30_001,), (5, 67, 53)])
@pytest.mark.parametrize("init", INITS)
def test_maps_of_many_chunks_have_the_same_bits_on_busy_cores(init: str, size: tuple[int, ...]) -> None:
    """The sweeps cut these maps into many chunks, which read from each other."""
    query, key = (normal_map(1, 3, *size, seed=seed).cumsum(-1).sin() for seed in (0, 1))
    start = random_matches(1, 2, size, size, seed=2) if init == "matches" else init

    def search() -> psal.Matches:
        return psal.patch_match(query, key, patch_size=3, init=start, seed=1, iterations=3)

    torch.set_num_threads(1)
    expected = search()
    for threads in (2, 4, 8):
        torch.set_num_threads(threads)
        found = search()
        assert_same_bits(found.index, expected.index)
        assert_same_bits(found.score, expected.score)


@pytest.mark.parametrize("init", INITS)
def test_same_seed_same_bits_in_a_second_run(init: str) -> None:
    for actual, expected in zip(attention(init, True, 1), attention(init, True, 1), strict=True):
        assert_same_bits(actual, expected)


def test_searches_in_several_python_threads_share_no_state() -> None:
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda init: attention(init, True, 2), INITS * 2))
    for init, run in zip(INITS * 2, runs, strict=True):
        for actual, expected in zip(run, attention(init, True, 2), strict=True):
            assert_same_bits(actual, expected)


def test_another_seed_gives_other_matches() -> None:
    image = normal_map(1, 2, 20, 20)
    first, second = (
        psal.patch_match(image, image.flip(2), init="random", iterations=0, seed=seed).index for seed in (1, 2)
    )
    assert not first.equal(second)


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_without_a_seed_torch_manual_seed_decides(backend: str) -> None:
    image = normal_map(1, 2, 20, 20)
    search = partial(psal.patch_match, image, image.flip(2), init="random", iterations=0, backend=backend)
    torch.manual_seed(1)
    first, second = search(), search()
    torch.manual_seed(1)
    again = search()
    assert_same_bits(again.index, first.index)
    assert not second.index.equal(first.index)


def test_a_seed_does_not_advance_the_generator_of_torch() -> None:
    image = normal_map(1, 2, 9, 8)
    before = torch.get_rng_state()
    psal.patch_match(image, image, seed=3)
    assert_same_bits(torch.get_rng_state(), before)


STRIDES: dict[str, Callable[[Tensor], Tensor]] = {
    "channels_last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "transposed": lambda x: x.mT.contiguous().mT,
    "batch_last": lambda x: x.movedim(0, -1).contiguous().movedim(-1, 0),
    "every_second": lambda x: x.repeat_interleave(2, -1)[..., ::2],
    "with_offset": lambda x: torch.nn.functional.pad(x, (3, 2, 1, 0), value=torch.nan)[..., 1:, 3:-2],
}


@pytest.mark.parametrize("strides", STRIDES)
@pytest.mark.parametrize("aggregate", [False, True])
@pytest.mark.parametrize("init", ["random", "tree"])
def test_strides_change_nothing(strides: str, aggregate: bool, init: str) -> None:
    lay_out = STRIDES[strides]
    inputs = [normal_map(2, 3, 9, 11, seed=seed) for seed in range(3)]
    key_mask, query_mask = (random_mask(2, (9, 11), seed=seed) for seed in (3, 4))

    def run(lay_out: Callable[[Tensor], Tensor]) -> tuple[Tensor, ...]:
        leaves = [lay_out(x).requires_grad_() for x in inputs]
        out = psal.patch_attention(
            *leaves, patch_size=3, seed=1, temperature=9.0, aggregate=aggregate, init=init,
            key_mask=lay_out(key_mask.float()).bool(), query_mask=query_mask,
        )  # fmt: skip
        cotangent = lay_out(normal_map(*out.shape, seed=9))
        return out, *torch.autograd.grad(out, leaves, cotangent)

    for actual, expected in zip(run(lay_out), run(lambda x: x.clone()), strict=True):
        assert_same_bits(actual.detach(), expected.detach())


@pytest.mark.parametrize("strides", STRIDES)
@pytest.mark.parametrize("patch_size", [1, 3])
def test_strides_of_matches_change_nothing(strides: str, patch_size: int) -> None:
    index, score = random_matches(2, 3, (9, 11), (7, 8))
    value = normal_map(2, 3, 7, 8, dtype=torch.float64)
    lay_out = STRIDES[strides]
    laid_out = lay_out(index.double()).long() if strides == "with_offset" else lay_out(index)
    expected = psal.aggregate(psal.Matches(index, score), value, patch_size=patch_size)
    actual = psal.aggregate(psal.Matches(laid_out, lay_out(score)), lay_out(value), patch_size=patch_size)
    assert_same_bits(actual, expected)


def test_an_expanded_map_is_matched_like_its_copy() -> None:
    """Strides of zero, forward and backward."""
    key, value = normal_map(3, 2, 7, 6, seed=1), normal_map(3, 2, 7, 6, seed=2)

    def run(copy: bool) -> tuple[Tensor, ...]:
        def expanded_attention(query: Tensor) -> Tensor:
            query = query.expand(3, -1, 7, -1)
            out = psal.patch_attention(
                query.contiguous() if copy else query, key, value, patch_size=3, seed=0, temperature=9.0
            )
            return out.sum()

        return gradients(expanded_attention, normal_map(1, 2, 1, 6, seed=3))

    for actual, expected in zip(run(False), run(True), strict=True):
        assert_same_bits(actual, expected)


def overflowing(init: str, similarity: str) -> Tensor:
    """Matches of a query whose first patches, to which nothing is propagated, overflow in every sum of squares."""
    query, key = normal_map(1, 3, 12, 13, seed=1), normal_map(1, 3, 14, 11, seed=2)
    query[0, 0, 0, 0] = 3e38
    matches = random_matches(1, 2, (12, 13), (14, 11)) if init == "matches" else init
    return psal.patch_match(query, key, patch_size=7, similarity=similarity, init=matches, seed=0).index


def digest() -> str:
    """Hash of matches, outputs and gradients of all inits."""
    results = [
        result for init in INITS for aggregate in (False, True) for result in attention(init, aggregate, 2, masked=True)
    ]
    results += [overflowing(init, similarity) for init in INITS for similarity in ("l2", "dot", "cosine")]
    return hashlib.sha256(b"".join(result.numpy().tobytes() for result in results)).hexdigest()


def test_results_do_not_depend_on_uninitialized_memory() -> None:
    """Guards against reads of uninitialized memory: glibc fills each new block with the given byte's complement.

    One such mistake: where descriptors overflow, a tree may return fewer than k keys and leave the others unwritten.
    """
    environment = {**os.environ, "MALLOC_PERTURB_": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, "-c", "from functional.test_bits import digest; print(digest())"],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run.stdout.strip() == digest()
