"""Registration of the ops with PyTorch: schema, fake implementation, gradients, tracing."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import torch
from support.maps import normal_map, random_mask, random_matches

from psal.ops import native
from psal.options import SIMILARITIES

WITHOUT_TENSORS = {"psal::simd_path", "psal::set_simd_path"}


def search_inputs(similarity: str, init: str, masked: bool) -> tuple[Any, ...]:
    sq, sk = (5, 6), (4, 7)
    return (
        normal_map(2, 3, *sq).requires_grad_(),
        normal_map(2, 3, *sk, seed=1).requires_grad_(),
        random_mask(2, sk) if masked else None,
        random_mask(2, sq) if masked else None,
        random_matches(2, 2, sq, sk).index if init == "matches" else None,
        torch.tensor(3),
        (3, 5),
        2,
        1,
        SIMILARITIES.index(similarity),
        native.INIT_KINDS.index(init),
        0,
    )


def score_inputs() -> tuple[Any, ...]:
    index = random_matches(2, 2, (5, 6), (4, 7)).index
    query, key = normal_map(2, 3, 5, 6), normal_map(2, 3, 4, 7, seed=1)
    return query.requires_grad_(), key.requires_grad_(), index, (3, 5), 0, 0


def score_backward_inputs() -> tuple[Any, ...]:
    query, key, index, *rest = score_inputs()
    query, key = query.detach(), key.detach()
    score = torch.ops.psal.score(query, key, index, *rest)
    return torch.ones_like(score), query, key, index, score, *rest


def attend_inputs(side: int) -> tuple[Any, ...]:
    index, score = random_matches(2, 2, (5, 6), (4, 7), dtype=torch.float32)
    return index, score.requires_grad_(), normal_map(2, 3, 4, 7).requires_grad_(), (side, side), 0.5


def attend_backward_inputs(side: int) -> tuple[Any, ...]:
    index, score, value, *rest = attend_inputs(side)
    score, value = score.detach(), value.detach()
    out, log_mass = torch.ops.psal.attend(index, score, value, *rest)
    return torch.ones_like(out), index, score, value, out, log_mass, *rest


def solve_poisson_inputs() -> tuple[Any, ...]:
    unknown = random_mask(1, (9, 11))[0, 0]
    return normal_map(1, 3, 9, 11)[0], unknown, torch.ones_like(unknown), 0.1, 1e-3


INPUTS: dict[str, tuple[str, Callable[[], tuple[Any, ...]]]] = {
    "search-l2-random": ("psal::search", partial(search_inputs, "l2", "random", masked=False)),
    "search-l2-tree-masked": ("psal::search", partial(search_inputs, "l2", "tree", masked=True)),
    "search-dot-matches-masked": ("psal::search", partial(search_inputs, "dot", "matches", masked=True)),
    "search-cosine-tree": ("psal::search", partial(search_inputs, "cosine", "tree", masked=False)),
    "score": ("psal::score", score_inputs),
    "score_backward": ("psal::score_backward", score_backward_inputs),
    "attend": ("psal::attend", partial(attend_inputs, 1)),
    "attend-patch": ("psal::attend", partial(attend_inputs, 3)),
    "attend_backward": ("psal::attend_backward", partial(attend_backward_inputs, 1)),
    "checked_key_mask": ("psal::checked_key_mask", lambda: (random_mask(2, (4, 7)), 2)),
    "attend_backward-patch": ("psal::attend_backward", partial(attend_backward_inputs, 3)),
    "solve_poisson": ("psal::solve_poisson", solve_poisson_inputs),
}


def check(name: str, inputs: Sequence[Any]) -> None:
    """Run opcheck; for a search in two parts, as its gradient test would add indices to scores."""
    op = getattr(torch.ops.psal, name.removeprefix("psal::")).default
    if name != "psal::search":
        torch.library.opcheck(op, tuple(inputs))
        return
    without_gradients = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(op, tuple(inputs), test_utils=without_gradients)
    torch.library.opcheck(op, tuple(x.detach() if isinstance(x, torch.Tensor) else x for x in inputs))


@pytest.mark.parametrize("case", INPUTS)
def test_opcheck_passes(case: str) -> None:
    name, inputs = INPUTS[case]
    check(name, inputs())


@pytest.mark.parametrize("case", ["search-l2-random", "score", "attend-patch"])
def test_opcheck_passes_on_channels_last(case: str) -> None:
    """Guards against a fake implementation whose strides differ from the kernel's."""
    name, inputs = INPUTS[case]
    laid_out = [
        x.detach().contiguous(memory_format=torch.channels_last).requires_grad_(x.requires_grad)
        if isinstance(x, torch.Tensor) and x.ndim == 4
        else x
        for x in inputs()
    ]
    check(name, laid_out)


def test_every_op_is_checked() -> None:
    registered = {name for name in torch._C._dispatch_get_all_op_names() if name.startswith("psal::")}
    assert registered == {name for name, _ in INPUTS.values()} | WITHOUT_TENSORS
