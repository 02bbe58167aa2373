"""Lower bounds on the time of the Triton kernels on some cards: a model on paper, which no card has verified.

A kernel takes at least as long as its arithmetic, as the bytes it reads through the L1 cache, as those that miss it and
come from the L2 cache, and as those that have to come from memory. The largest of the four is the bound.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from psal.measure.table import Table, number
from psal.ops.morton import MIN_KEPT, SPARE, TABLES, WINDOW
from psal.ops.reference import JUMPS, schedule_of
from psal.options import DEFAULT_ITERATIONS, Start

L1_BYTES_PER_CLOCK = 128  # of a multiprocessor, on all these cards
INCOHERENT_JUMPS = 2  # candidates of an unseeded flood that lie far from those of neighboring queries
DESCRIPTOR_BYTES = 64
LINK_BYTES = 12  # index and score


@dataclass(frozen=True)
class Card:
    """A card by its data sheet; the L2 bandwidth is an assumption, from measurements by others, within 30 %.

    Attributes:
        multiprocessors, lanes: count, and float32 lanes of each.
        clock: boost clock in Hz.
        l2, memory: bytes per second.
    """

    multiprocessors: int
    lanes: int
    clock: float
    l2: float
    memory: float


CARDS = {
    "A100": Card(108, 64, 1.41e9, 4.5e12, 1.555e12),
    "H100": Card(132, 128, 1.755e9, 5.7e12, 3.35e12),
    "RTX 4090": Card(128, 128, 2.52e9, 5.0e12, 1.008e12),
}


@dataclass(frozen=True)
class Problem:
    """The layer on square maps; the value has as many channels as query and key.

    Attributes:
        size: side of the maps.
        channels: of the maps.
        neighbors, patch_size: of the search.
        bytes_per_value: 4 for float32, 2 for half types.
    """

    size: int
    channels: int = 16
    neighbors: int = 3
    patch_size: int = 7
    bytes_per_value: int = 4

    @property
    def pixels(self) -> int:
        return self.size**2

    @property
    def patch(self) -> int:
        """Values of a patch."""
        return self.channels * self.patch_size**2

    @property
    def map_bytes(self) -> int:
        return self.pixels * self.channels * self.bytes_per_value


@dataclass(frozen=True)
class Work:
    """What a kernel does at least: float32 instructions, bytes through L1, bytes from L2, bytes from memory."""

    instructions: float
    l1: float
    l2: float
    memory: float

    def __add__(self, other: "Work") -> "Work":
        return Work(
            self.instructions + other.instructions, self.l1 + other.l1, self.l2 + other.l2, self.memory + other.memory
        )

    def seconds_on(self, card: Card) -> float:
        return max(
            self.instructions / (card.multiprocessors * card.lanes * card.clock),
            self.l1 / (card.multiprocessors * L1_BYTES_PER_CLOCK * card.clock),
            self.l2 / card.l2,
            self.memory / card.memory,
        )


def search_work(problem: Problem, init: str) -> Work:
    """Return the work of a search; a candidate reads its own and the query's patch. Sorting the curves is left out."""
    sk = (problem.size, problem.size)
    schedule = schedule_of(Start(init, None, DEFAULT_ITERATIONS[init]), sk)
    seeded = init == "tree"
    starts = problem.neighbors + (max(MIN_KEPT, problem.neighbors + SPARE) if seeded else 0)
    draws = schedule.floods * len(schedule.radii)
    candidates = starts + schedule.floods * len(JUMPS) * 2 * len(sk) + draws
    incoherent = starts + draws + (0 if seeded else schedule.floods * INCOHERENT_JUMPS)
    conversions = 2 if problem.bytes_per_value < 4 else 0
    scanned = TABLES * WINDOW * DESCRIPTOR_BYTES if seeded else 0
    state = 2 * schedule.floods * len(JUMPS) * problem.neighbors * 8  # matches, read and written by every jump
    patch_bytes = problem.patch * problem.bytes_per_value
    return Work(
        problem.pixels * (candidates * problem.patch * (2 + conversions) + scanned / 2),
        problem.pixels * (2 * candidates * patch_bytes + scanned),
        problem.pixels * (incoherent * patch_bytes + scanned),
        2 * problem.map_bytes + problem.pixels * state,
    )


def attend_work(problem: Problem, *, aggregate: bool, passes: int = 1, maps: int = 1) -> Work:
    """Return the work of a sum over all links of a window.

    Args:
        problem: the layer.
        aggregate: whether the window is a patch, and not one pixel.
        passes: how often indices and scores are read.
        maps: how many maps are read at each link.
    """
    links = problem.pixels * problem.neighbors * (problem.patch_size**2 if aggregate else 1)
    value_bytes = problem.channels * problem.bytes_per_value * maps
    once = problem.pixels * problem.neighbors
    return Work(
        links * (2 * problem.channels * maps + 20 * passes),
        links * (value_bytes + LINK_BYTES * passes),
        once * (value_bytes + LINK_BYTES * passes),  # neighbors share all but one link of a window
        (1 + maps) * problem.map_bytes + once * LINK_BYTES,
    )


def works(problem: Problem) -> Mapping[str, Work]:
    """Return the work of every op of the layer, by the name that :mod:`psal.experiments.layer_speed` gives it."""
    score_backward = attend_work(problem, aggregate=True)
    return {
        "search, seeded": search_work(problem, "tree"),
        "search, paper's schedule": search_work(problem, "random"),
        "attend": attend_work(problem, aggregate=False, passes=2),
        "aggregate": attend_work(problem, aggregate=True, passes=2),
        "gradients of attend": attend_work(problem, aggregate=False, maps=3) + attend_work(problem, aggregate=False),
        "gradients of aggregate": attend_work(problem, aggregate=True, maps=3) + attend_work(problem, aggregate=True),
        "gradients of scores": score_backward + score_backward,
    }


def card_named(name: str) -> Card | None:
    """Return the card that a device's name contains, if the model knows it."""
    return next((card for known, card in CARDS.items() if known in name), None)


def bounds_table(problem: Problem) -> Table:
    """Return the bounds of all ops on all cards, in milliseconds."""
    rows = [
        [op, *(number(1e3 * work.seconds_on(card)) for card in CARDS.values())] for op, work in works(problem).items()
    ]
    precision = "float32" if problem.bytes_per_value == 4 else "float16"
    return Table(f"{problem.size} × {problem.size}, {precision}", ["op", *CARDS], rows)


def tables() -> list[Table]:
    """Return the bounds that the documentation shows."""
    return [bounds_table(Problem(size, bytes_per_value=width)) for size in (512, 1024) for width in (4, 2)]
