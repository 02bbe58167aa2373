"""Every mistake in the arguments gets an error that names the argument and shows the value."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import psal

IMAGE = torch.zeros(1, 2, 6, 5)
MATCHES = psal.Matches(torch.zeros(1, 2, 6, 5, dtype=torch.int64), torch.zeros(1, 2, 6, 5))
NARROW = psal.Matches(MATCHES.index[..., 1:], MATCHES.score[..., 1:])
MASK = torch.ones(1, 1, 6, 5, dtype=torch.bool)


def mask_of(count: int) -> Tensor:
    """A mask that leaves ``count`` of the 30 keys."""
    return (torch.arange(30) < count).reshape(1, 1, 6, 5)


SHAPES: Sequence[tuple[Any, Any, type[Exception], str]] = [
    (IMAGE.tolist(), IMAGE, TypeError, r"query must be a tensor, got list"),
    (IMAGE, None, TypeError, r"key must be a tensor, got NoneType"),
    (IMAGE.to(torch.uint8), IMAGE, TypeError, r"query must be float32.*got torch\.uint8: convert it first"),
    (IMAGE, IMAGE.to(torch.int64), TypeError, r"key must be float32.*got torch\.int64"),
    (IMAGE.to(torch.complex64), IMAGE, TypeError, r"query must be float32.*got torch\.complex64"),
    (IMAGE[0, 0], IMAGE, ValueError, r"query must be \(B, C, \*S\) with 1 to 3 spatial dimensions, got shape \(6, 5\)"),
    (IMAGE[None, None], IMAGE, ValueError, r"query must be \(B, C, \*S\).*got shape \(1, 1, 1, 2, 6, 5\)"),
    (IMAGE[:, :0], IMAGE[:, :0], ValueError, r"query must have at least one channel and one pixel.*\(1, 0, 6, 5\)"),
    (IMAGE, IMAGE[..., :0], ValueError, r"key must have at least one channel and one pixel.*\(1, 2, 6, 0\)"),
    (
        IMAGE,
        IMAGE[:, :1],
        ValueError,
        r"query and key must have the same .*channels.*\(1, 2, 6, 5\) and \(1, 1, 6, 5\)",
    ),
    (IMAGE, IMAGE.expand(3, -1, -1, -1), ValueError, r"query and key must have the same batch size"),
    (IMAGE, IMAGE[..., 0], ValueError, r"query and key must have the same .*number of dimensions"),
    (IMAGE, IMAGE.to("meta"), ValueError, r"query and key must be on one device, got cpu and meta"),
]

WORDS: Sequence[tuple[dict[str, Any], type[Exception], str]] = [
    ({"patch_size": 4}, ValueError, r"patch_size must be odd and positive, got 4"),
    ({"patch_size": 0}, ValueError, r"patch_size must be odd and positive, got 0"),
    ({"patch_size": -3}, ValueError, r"patch_size must be odd and positive, got -3"),
    ({"patch_size": (3, 2)}, ValueError, r"patch_size must be odd and positive, got \(3, 2\)"),
    ({"patch_size": (3, 3, 3)}, ValueError, r"patch_size must be an int or 2 of them, got \(3, 3, 3\)"),
    ({"patch_size": (3, 3.0)}, TypeError, r"patch_size must be made of ints, got \(3, 3\.0\)"),
    ({"patch_size": 7.0}, TypeError, r"patch_size must be an int or one per dimension, got 7\.0"),
    ({"patch_size": None}, TypeError, r"patch_size must be an int or one per dimension, got None"),
    ({"neighbors": 0}, ValueError, r"neighbors must be at least 1, got 0"),
    ({"neighbors": 2.0}, TypeError, r"neighbors must be an int, got 2\.0"),
    ({"neighbors": 31}, ValueError, r"neighbors must not exceed the 30 keys, got 31"),
    (
        {"neighbors": 4, "key_mask": mask_of(3)},
        ValueError,
        r"neighbors must not exceed the 3 keys that key_mask leaves",
    ),
    ({"key_mask": mask_of(0)}, ValueError, r"key_mask leaves no key"),
    ({"key_mask": MASK.float()}, TypeError, r"key_mask must be a bool tensor.*got torch\.float32"),
    ({"key_mask": [True]}, TypeError, r"key_mask must be a bool tensor.*got list"),
    ({"key_mask": MASK[0]}, ValueError, r"key_mask must have shape \(1, 1, 6, 5\), got \(1, 6, 5\)"),
    ({"key_mask": MASK.mT}, ValueError, r"key_mask must have shape \(1, 1, 6, 5\), got \(1, 1, 5, 6\)"),
    ({"key_mask": MASK.to("meta")}, ValueError, r"key_mask must be on cpu, got meta"),
    ({"query_mask": MASK.long()}, TypeError, r"query_mask must be a bool tensor.*got torch\.int64"),
    ({"query_mask": MASK[..., 1:]}, ValueError, r"query_mask must have shape \(1, 1, 6, 5\), got \(1, 1, 6, 4\)"),
    ({"query_mask": MASK.to("meta")}, ValueError, r"query_mask must be on cpu, got meta"),
    ({"similarity": "l1"}, ValueError, r"similarity must be one of 'l2', 'dot', 'cosine' or a function .*, got 'l1'"),
    ({"similarity": 2}, TypeError, r"similarity must be one of 'l2', 'dot', 'cosine' or a function .*, got int"),
    ({"similarity": IMAGE}, TypeError, r"similarity must be one of .*, got Tensor"),
    ({"similarity": IMAGE.numpy()}, TypeError, r"similarity must be one of .*, got ndarray"),
    (
        {"similarity": lambda q, k: None},
        TypeError,
        r"similarity must return a float tensor of shape \(.*30,?\) for patches of shape \(.*30, 98\), got NoneType",
    ),
    ({"similarity": lambda q, k: (q > k).any(-1)}, TypeError, r"must return a float tensor .*, got torch\.bool"),
    ({"similarity": lambda q, k: q * k}, ValueError, r"similarity must return shape \(.*30,?\) .*, got \(.*30, 98\)"),
    ({"similarity": lambda q, k: (q * k).sum()}, ValueError, r"similarity must return shape .*, got \(\)"),
    ({"padding_mode": "circular"}, ValueError, r"padding_mode must be one of .*'zeros', got 'circular'"),
]

SEARCH: Sequence[tuple[dict[str, Any], type[Exception], str]] = [
    ({"iterations": -1}, ValueError, r"iterations must be at least 0, got -1"),
    ({"iterations": 1.5}, TypeError, r"iterations must be an int, got 1\.5"),
    ({"init": "best"}, ValueError, r"init must be one of 'random', 'tree' or Matches, got 'best'"),
    ({"init": IMAGE}, TypeError, r"init must be one of 'random', 'tree' or Matches, got Tensor"),
    ({"init": IMAGE.numpy()}, TypeError, r"init must be one of 'random', 'tree' or Matches, got ndarray"),
    ({"init": "tree", "backend": "reference"}, ValueError, r"init='tree' needs the native backend"),
    ({"init": (1, 2)}, TypeError, r"init must be Matches, as patch_match returns them, got tuple"),
    ({"init": NARROW}, ValueError, r"init must belong to the query"),
    ({"init": psal.Matches(MATCHES.index, MATCHES.score[:, :1])}, ValueError, r"init\.index and init\.score must both"),
    ({"init": psal.Matches(MATCHES.index.int(), MATCHES.score)}, TypeError, r"init\.index must be int64, got"),
    ({"seed": 1.0}, TypeError, r"seed must be an int or None, got 1\.0"),
    ({"seed": 2**63}, ValueError, r"seed must fit into 64 bits, got 9223372036854775808"),
    ({"backend": "cuda"}, ValueError, r"backend must be one of 'native', 'reference', got 'cuda'"),
    (
        {"backend": "native", "similarity": lambda q, k: (q * k).sum(-1)},
        ValueError,
        r"backend='native' cannot run a callable similarity: use backend='reference' or None",
    ),
]  # fmt: skip

VALUES: Sequence[tuple[Any, Any, type[Exception], str]] = [
    (None, IMAGE, TypeError, r"matches must be Matches, as patch_match returns them, got NoneType"),
    ((1, 2, 3), IMAGE, TypeError, r"matches must be Matches, as patch_match returns them, got tuple"),
    (psal.Matches(MATCHES.index.int(), MATCHES.score), IMAGE, TypeError, r"matches\.index must be int64"),
    (psal.Matches(MATCHES.index, MATCHES.index), IMAGE, TypeError, r"matches\.score must be floating point"),
    (psal.Matches(MATCHES.index, MATCHES.score[0]), IMAGE, ValueError, r"must both be \(B, k, \*Sq\)"),
    (MATCHES, IMAGE.int(), TypeError, r"value must be float32.*got torch\.int32"),
    (MATCHES, IMAGE[:, :0], ValueError, r"value must have at least one channel"),
    (MATCHES, IMAGE[0], ValueError, r"matches\.index and value must have the same .*number of dimensions"),
    (MATCHES, IMAGE.expand(2, -1, -1, -1), ValueError, r"matches\.index and value must have the same batch size"),
    (MATCHES, IMAGE.to("meta"), ValueError, r"matches\.index and value must be on one device, got cpu and meta"),
]

TEMPERATURES: Sequence[tuple[Any, type[Exception], str]] = [
    (0.0, ValueError, r"temperature must be positive and finite, got 0\.0"),
    (-1.0, ValueError, r"temperature must be positive and finite, got -1\.0"),
    (float("nan"), ValueError, r"temperature must be positive and finite, got nan"),
    (float("inf"), ValueError, r"temperature must be positive and finite, got inf"),
    ("1", TypeError, r"temperature must be a number, got '1'"),
]


@pytest.mark.parametrize("match", [psal.patch_match, psal.exact_match])
@pytest.mark.parametrize(("query", "key", "error", "text"), SHAPES, ids=[text for *_, text in SHAPES])
def test_searches_refuse_maps_that_do_not_fit(
    match: Any, query: Any, key: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        match(query, key)


@pytest.mark.parametrize("match", [psal.patch_match, psal.exact_match])
@pytest.mark.parametrize(("arguments", "error", "text"), WORDS, ids=[text for *_, text in WORDS])
def test_searches_refuse_wrong_arguments(
    match: Any, arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        match(IMAGE, IMAGE, **arguments)


@pytest.mark.parametrize(("arguments", "error", "text"), SEARCH, ids=[text for *_, text in SEARCH])
def test_patch_match_refuses_wrong_arguments(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        psal.patch_match(IMAGE, IMAGE, **arguments)


def test_the_native_backend_refuses_other_devices() -> None:
    image = IMAGE.to("meta")
    with pytest.raises(ValueError, match=r"backend='native' cannot run tensors on meta"):
        psal.patch_match(image, image, backend="native")


@pytest.mark.parametrize("gather", [psal.attend, psal.aggregate])
@pytest.mark.parametrize(("matches", "value", "error", "text"), VALUES, ids=[text for *_, text in VALUES])
def test_attending_refuses_values_that_do_not_fit(
    gather: Any, matches: Any, value: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        gather(matches, value)


def test_a_plain_pair_is_taken_for_matches() -> None:
    plain: Any = tuple(MATCHES)
    value = torch.rand(1, 3, 6, 5)
    for gather in (psal.attend, psal.aggregate):
        assert gather(plain, value).equal(gather(MATCHES, value))
    image = torch.rand(1, 2, 6, 5)
    started = [psal.patch_match(image, image, init=init, seed=0) for init in (MATCHES, plain)]
    assert started[0].index.equal(started[1].index)


@pytest.mark.parametrize("patch_size", [np.int64(3), np.array([3, 3]), [np.int32(3), 3], torch.tensor(3)])
def test_whole_numbers_of_numpy_and_torch_are_patch_sizes(patch_size: Any) -> None:
    image = torch.rand(1, 2, 6, 5)
    expected = psal.patch_attention(image, image, image, patch_size=3, seed=0)
    assert isinstance(expected, Tensor)
    assert psal.PatchAttention(patch_size, seed=0)(image, image, image).equal(expected)


@pytest.mark.parametrize("gather", [psal.attend, psal.aggregate])
@pytest.mark.parametrize(("temperature", "error", "text"), TEMPERATURES)
def test_attending_refuses_a_wrong_temperature(
    gather: Any, temperature: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        gather(MATCHES, IMAGE, temperature=temperature)


def test_aggregate_refuses_an_even_patch() -> None:
    with pytest.raises(ValueError, match="patch_size must be odd and positive, got 2"):
        psal.aggregate(MATCHES, IMAGE, patch_size=2)


def test_attention_refuses_a_value_on_another_grid() -> None:
    with pytest.raises(ValueError, match=r"key and value must be on one grid, got \(1, 2, 6, 5\) and \(1, 2, 5, 5\)"):
        psal.patch_attention(IMAGE, IMAGE, IMAGE[..., 1:, :])


@pytest.mark.parametrize(
    ("value", "arguments", "text"),
    [
        (
            IMAGE.expand(2, -1, -1, -1),
            {},
            r"value and key must have the same batch size .*\(2, 2, 6, 5\) and \(1, 2, 6, 5\)",
        ),
        (IMAGE.to("meta"), {}, r"value and key must be on one device, got meta and cpu"),
        (IMAGE, {"temperature": 0.0}, r"temperature must be positive and finite, got 0\.0"),
    ],
)
def test_attention_refuses_what_does_not_fit_before_it_searches(
    value: Tensor, arguments: dict[str, Any], text: str
) -> None:
    def search_has_begun(query: Tensor, key: Tensor) -> Tensor:
        raise AssertionError

    with pytest.raises(ValueError, match=text):
        psal.patch_attention(IMAGE, IMAGE, value, similarity=search_has_begun, **arguments)


def test_attention_refuses_an_integer_value() -> None:
    with pytest.raises(TypeError, match=r"value must be float32.*got torch\.uint8"):
        psal.patch_attention(IMAGE, IMAGE, IMAGE.to(torch.uint8))


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
def test_the_layer_refuses_wrong_arguments_when_it_is_made(
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
def test_the_block_refuses_wrong_arguments_when_it_is_made(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        psal.PatchAttentionBlock(**arguments)
