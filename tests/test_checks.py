"""Tensors that do not fit get an error that names the argument and shows the value."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

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
    (IMAGE.to_sparse(), IMAGE, TypeError, r"query must be a dense tensor.*got torch\.sparse_coo"),
    (IMAGE, IMAGE.to_mkldnn(), TypeError, r"key must be a dense tensor.*got torch\._mkldnn"),
    (
        torch.nested.nested_tensor([IMAGE[0], IMAGE[0]], layout=torch.jagged),
        IMAGE,
        TypeError,
        r"query must be a dense tensor.*got a nested tensor",
    ),
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

MASKS_AND_SCORES: Sequence[tuple[dict[str, Any], type[Exception], str]] = [
    ({"patch_size": (3, 3, 3)}, ValueError, r"patch_size must be an int or 2 of them, got \(3, 3, 3\)"),
    ({"neighbors": 31}, ValueError, r"neighbors must not exceed the 30 keys, got 31"),
    ({"patch_size": 46341}, ValueError, r"patch_size is too large: .* query would have 46346 × 46345 positions"),
    ({"patch_size": (1, 2**31 - 1)}, ValueError, r"patch_size is too large: .*, got \(1, 2147483647\)"),
    ({"patch_size": 2**62 + 1}, ValueError, r"patch_size is too large: "),
    ({"patch_size": 2**63 - 1}, ValueError, r"patch_size is too large: "),
    ({"patch_size": 2**80 + 1}, ValueError, r"patch_size is too large: "),
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
    (
        {"similarity": lambda q, k: None},
        TypeError,
        r"similarity must return a float tensor of shape \(.*30,?\) for patches of shape \(.*30, 98\), got NoneType",
    ),
    ({"similarity": lambda q, k: (q > k).any(-1)}, TypeError, r"must return a float tensor .*, got torch\.bool"),
    ({"similarity": lambda q, k: q * k}, ValueError, r"similarity must return shape \(.*30,?\) .*, got \(.*30, 98\)"),
    ({"similarity": lambda q, k: (q * k).sum()}, ValueError, r"similarity must return shape .*, got \(\)"),
]

WARM_STARTS: Sequence[tuple[dict[str, Any], type[Exception], str]] = [
    ({"init": (1, 2)}, TypeError, r"init must be Matches, as patch_match returns them, got tuple"),
    ({"init": NARROW}, ValueError, r"init must belong to the query"),
    ({"init": psal.Matches(MATCHES.index, MATCHES.score[:, :1])}, ValueError, r"init\.index and init\.score must both"),
    ({"init": psal.Matches(MATCHES.index.int(), MATCHES.score)}, TypeError, r"init\.index must be int64, got"),
]

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
    (10**400, ValueError, r"temperature must be positive and finite, got 1000*\.\.\.000*"),
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
@pytest.mark.parametrize(("arguments", "error", "text"), MASKS_AND_SCORES, ids=[text for *_, text in MASKS_AND_SCORES])
def test_searches_refuse_masks_counts_and_scores_that_do_not_fit(
    match: Any, arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        match(IMAGE, IMAGE, **arguments)


@pytest.mark.parametrize(("arguments", "error", "text"), WARM_STARTS, ids=[text for *_, text in WARM_STARTS])
def test_patch_match_refuses_a_wrong_warm_start(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        psal.patch_match(IMAGE, IMAGE, **arguments)


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


@pytest.mark.parametrize("gather", [psal.attend, psal.aggregate])
@pytest.mark.parametrize(("temperature", "error", "text"), TEMPERATURES)
def test_attending_refuses_a_wrong_temperature(
    gather: Any, temperature: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        gather(MATCHES, IMAGE, temperature=temperature)


@pytest.mark.parametrize("patch_size", [2**31 - 1, 2**62 + 1, 2**63 - 1])
def test_aggregate_refuses_a_huge_patch(patch_size: int) -> None:
    with pytest.raises(ValueError, match=r"patch_size is too large"):
        psal.aggregate(MATCHES, IMAGE, patch_size=patch_size)


def test_a_layer_of_meta_or_fake_tensors_takes_masks() -> None:
    found = psal.patch_match(IMAGE.to("meta"), IMAGE.to("meta"), key_mask=MASK.to("meta"))
    assert found.index.shape == (1, 3, 6, 5)
    with FakeTensorMode() as mode:
        image, mask = mode.from_tensor(IMAGE), mode.from_tensor(MASK)
        out, matches = psal.patch_attention(image, image, image, key_mask=mask, return_matches=True)
        assert out.shape == (1, 2, 6, 5)
        assert psal.attend(matches, image).shape == (1, 2, 6, 5)


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
def test_attention_refuses_wrong_values_before_it_searches(value: Tensor, arguments: dict[str, Any], text: str) -> None:
    def search_started(query: Tensor, key: Tensor) -> Tensor:
        raise AssertionError

    with pytest.raises(ValueError, match=text):
        psal.patch_attention(IMAGE, IMAGE, value, similarity=search_started, **arguments)


def test_attention_refuses_an_integer_value() -> None:
    with pytest.raises(TypeError, match=r"value must be float32.*got torch\.uint8"):
        psal.patch_attention(IMAGE, IMAGE, IMAGE.to(torch.uint8))
