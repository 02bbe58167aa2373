"""Screened Poisson equation on a masked pixel grid, solved by the op ``solve_poisson``; see ``csrc/README.md``.

Time and memory of the same method on sparse matrices of scipy and torch, as multiples of the op's, with three channels,
on one thread. The largest errors are the same, 1e-4 to 7e-4.

==========================================  =========  ====  ======
fill                                         unknowns  time  memory
==========================================  =========  ====  ======
object removal from 24 megapixels             572,974   5.1     3.2
1 megapixel extended by a quarter per side  1,248,480   5.5     4.2
free-form holes in 256² pixels                 48,000   6.2
three holes of 48² pixels                       6,912    12
==========================================  =========  ====  ======
"""

import torch
import torch.nn.functional as F
from torch import Tensor

import psal.ops.registration  # noqa: F401 - makes torch.ops.psal

TOLERANCE = 1 / 1024  # largest estimated error of a pixel: a quarter of an 8-bit level


def solve_poisson(right_side: Tensor, unknown: Tensor, domain: Tensor, screening: float = 0.0) -> Tensor:
    """Solve Δx − screening · x = right_side for the unknown pixels.

    The other pixels of the domain are fixed to 0 (Dirichlet); no flux crosses the border of the domain (Neumann).

    Args:
        right_side: ``[C, h, w]``.
        unknown: bool ``[h, w]``. Without screening, each connected part must touch a fixed pixel.
        domain: bool ``[h, w]``, True at least at the unknown pixels.
        screening: at least 0; the influence of a pixel fades over about 1 / √screening pixels.

    Returns:
        x ``[C, h, w]``; 0 outside the unknown pixels. The error is estimated: it is up to three times ``TOLERANCE``,
        and more where the domain is a corridor of a few pixels. A value that is not finite spoils all channels.
    """
    x: Tensor = torch.ops.psal.solve_poisson(right_side, unknown, domain, screening, TOLERANCE)
    return x


def divergence(across: Tensor, down: Tensor) -> Tensor:
    """Divergence ``[C, h, w]`` of flows to the next pixel, ``[C, h, w − 1]`` and ``[C, h − 1, w]``."""
    return F.pad(across, (1, 1)).diff(dim=2) + F.pad(down, (0, 0, 1, 1)).diff(dim=1)
