"""Several fills of one hole that differ in their sources."""

from dataclasses import replace

import torch
from torch import Tensor

from psal.editing.hole_filling.coarse_to_fine import Filled
from psal.editing.hole_filling.fill_request import FillRequest
from psal.editing.hole_filling.hole_windows import fill_holes
from psal.seeds import add_to_seed

SEEDS_PER_VARIANT = 1_000_000  # beyond those of all levels


def fill_variants(request: FillRequest, count: int) -> list[Filled]:
    """Fill a hole several times, best first by the energy of the fill.

    At the coarsest level each fill avoids the sources of those before it, as long as enough others are left.
    """
    found: list[Filled] = []
    avoid: Tensor | None = None
    for number in range(count):

        def progress(done: float, number: int = number) -> None:
            request.report((number + done) / count)

        seed = add_to_seed(request.seed, SEEDS_PER_VARIANT * number)
        found.append(fill_holes(replace(request, seed=seed, avoid=avoid, progress=progress)))
        if number < count - 1:
            avoid = torch.zeros_like(request.hole) if avoid is None else avoid
            avoid.view(-1)[found[-1].source] = True
    return sorted(found, key=lambda filled: filled.energy)
