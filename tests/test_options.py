"""Wrong options get an error that names the option and shows the value, wherever they are given."""

from collections.abc import Sequence
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import psal
from psal.options import SearchOptions

IMAGE = torch.zeros(1, 2, 6, 5)

SHARED: Sequence[tuple[dict[str, Any], type[Exception], str]] = [
    ({"patch_size": 4}, ValueError, r"patch_size must be odd and positive, got 4"),
    ({"patch_size": 0}, ValueError, r"patch_size must be odd and positive, got 0"),
    ({"patch_size": -3}, ValueError, r"patch_size must be odd and positive, got -3"),
    ({"patch_size": (3, 2)}, ValueError, r"patch_size must be odd and positive, got \(3, 2\)"),
    ({"patch_size": (3, 3.0)}, TypeError, r"patch_size must be made of ints, got \(3, 3\.0\)"),
    ({"patch_size": 7.0}, TypeError, r"patch_size must be an int or one per dimension, got 7\.0"),
    ({"patch_size": None}, TypeError, r"patch_size must be an int or one per dimension, got None"),
    ({"neighbors": 0}, ValueError, r"neighbors must be at least 1, got 0"),
    ({"neighbors": 2.0}, TypeError, r"neighbors must be an int, got 2\.0"),
    ({"similarity": "l1"}, ValueError, r"similarity must be one of 'l2', 'dot', 'cosine' or a function .*, got 'l1'"),
    ({"similarity": 2}, TypeError, r"similarity must be one of 'l2', 'dot', 'cosine' or a function .*, got int"),
    ({"similarity": IMAGE}, TypeError, r"similarity must be one of .*, got Tensor"),
    ({"similarity": IMAGE.numpy()}, TypeError, r"similarity must be one of .*, got ndarray"),
    ({"padding_mode": "circular"}, ValueError, r"padding_mode must be one of .*'zeros', got 'circular'"),
]

SEARCH: Sequence[tuple[dict[str, Any], type[Exception], str]] = [
    ({"iterations": -1}, ValueError, r"iterations must be at least 0, got -1"),
    ({"iterations": 1.5}, TypeError, r"iterations must be an int, got 1\.5"),
    ({"iterations": 2**70}, ValueError, r"iterations must be below 2\*\*31, got 1180591620717411303424"),
    ({"init": "best"}, ValueError, r"init must be one of 'random', 'tree' or Matches, got 'best'"),
    ({"init": IMAGE}, TypeError, r"init must be one of 'random', 'tree' or Matches, got Tensor"),
    ({"init": IMAGE.numpy()}, TypeError, r"init must be one of 'random', 'tree' or Matches, got ndarray"),
    ({"seed": 1.0}, TypeError, r"seed must be an int or None, got 1\.0"),
    ({"seed": 2**63}, ValueError, r"seed must fit into 64 bits, got 9223372036854775808"),
    ({"backend": "cuda"}, ValueError, r"backend must be one of 'native', 'triton', 'reference', got 'cuda'"),
]


BACKEND: Sequence[tuple[dict[str, Any], type[Exception], str]] = [
    ({"init": "tree", "similarity": max}, ValueError, r"init='tree' needs similarity"),
    (
        {"backend": "native", "similarity": lambda q, k: (q * k).sum(-1)},
        ValueError,
        r"backend='native' cannot run a callable similarity: use backend='reference' or None",
    ),
]


@pytest.mark.parametrize(("arguments", "error", "text"), [*SHARED, *SEARCH])
def test_options_refuse_wrong_values(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        SearchOptions(**arguments)


@pytest.mark.parametrize("match", [psal.patch_match, psal.exact_match])
@pytest.mark.parametrize(("arguments", "error", "text"), SHARED)
def test_searches_refuse_wrong_options(
    match: Any, arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        match(IMAGE, IMAGE, **arguments)


@pytest.mark.parametrize(("arguments", "error", "text"), [*SEARCH, *BACKEND])
def test_patch_match_refuses_wrong_options(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        psal.patch_match(IMAGE, IMAGE, **arguments)


def test_the_native_backend_refuses_other_devices() -> None:
    with FakeTensorMode():  # no GPU is needed
        image = torch.empty(IMAGE.shape, device="cuda")
        with pytest.raises(ValueError, match=r"backend='native' cannot run tensors on cuda:0"):
            psal.patch_match(image, image, backend="native")


@pytest.mark.parametrize("patch_size", [np.int64(3), np.array([3, 3]), [np.int32(3), 3], torch.tensor(3)])
def test_integers_of_numpy_and_torch_are_patch_sizes(patch_size: Any) -> None:
    image = torch.rand(1, 2, 6, 5)
    expected = psal.patch_attention(image, image, image, patch_size=3, seed=0)
    assert psal.PatchAttention(patch_size, seed=0)(image, image, image).equal(expected)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"patch_size": 2}, ValueError, "patch_size must be odd and positive, got 2"),
        ({"patch_size": 7.0}, TypeError, r"patch_size must be an int or one per dimension, got 7\.0"),
        ({"neighbors": 0}, ValueError, "neighbors must be at least 1, got 0"),
        ({"iterations": -1}, ValueError, "iterations must be at least 0, got -1"),
        ({"similarity": "l1"}, ValueError, "similarity must be one of"),
        ({"temperature": 0}, ValueError, "temperature must be positive and finite, got 0"),
        ({"init": "best"}, ValueError, "init must be one of"),
        ({"padding_mode": "same"}, ValueError, "padding_mode must be one of"),
        ({"seed": "1"}, TypeError, "seed must be an int or None, got '1'"),
        ({"backend": "gpu"}, ValueError, "backend must be one of"),
    ],
)
def test_the_layer_refuses_wrong_options_when_it_is_built(
    arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        psal.PatchAttention(**arguments)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"channels": 0}, "channels must be at least 1, got 0"),
        ({"channels": 6, "heads": 4}, "heads must divide channels, got 4 heads for 6 channels"),
        ({"channels": 6, "dimensions": 4}, "dimensions must be 1, 2 or 3, got 4"),
        ({"channels": 6, "neighbors": -2}, "neighbors must be at least 1, got -2"),
        (
            {"channels": 8, "dimensions": 3, "patch_size": (3, 3)},
            r"patch_size must be an int or 3 of them, got \(3, 3\)",
        ),
    ],
)
def test_the_block_refuses_wrong_options_when_it_is_built(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        psal.PatchAttentionBlock(**arguments)


def test_integers_and_floats_of_numpy_are_taken_everywhere() -> None:
    image = torch.rand(1, 2, 6, 5)
    plain = psal.patch_attention(image, image, image, neighbors=2, iterations=2, seed=3, temperature=0.5)
    numbers: dict[str, Any] = {"neighbors": np.int8(2), "iterations": np.uint64(2), "seed": np.int16(3)}
    numbers["temperature"] = np.float32(0.5)
    assert psal.patch_attention(image, image, image, **numbers).equal(plain)
    layer = psal.PatchAttention(**numbers)
    assert layer(image, image, image).equal(plain)


def test_options_cannot_be_changed() -> None:
    options = SearchOptions()
    with pytest.raises(FrozenInstanceError):
        options.seed = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("given", "default_init", "init", "iterations"),
    [
        ({}, "tree", "tree", 1),
        ({}, "random", "random", 5),
        ({"init": "random"}, "tree", "random", 5),
        ({"init": "random", "iterations": 0}, "tree", "random", 0),
        ({"init": psal.Matches(torch.zeros(1, 2, 6, 5, dtype=torch.int64), IMAGE)}, "tree", "matches", 1),
    ],
)
def test_a_backend_fills_in_its_init_and_iterations(
    given: dict[str, Any], default_init: str, init: str, iterations: int
) -> None:
    start = SearchOptions(**given).start(default_init)
    assert (start.init, start.iterations) == (init, iterations)
    assert (start.index is not None) == (init == "matches")
