"""Energy of a fill: how much its patches differ from where they were copied from."""

from psal.editing.hole_filling.level_fill import LevelFill
from psal.sums import mean


def energy(fill: LevelFill) -> float:
    """Mean distance between the patches that touch the hole and their matches."""
    return mean(fill.distance[fill.queries])
