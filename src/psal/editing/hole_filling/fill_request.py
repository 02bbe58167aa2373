"""What is to be filled, and with what."""

from dataclasses import dataclass

from torch import Tensor

from psal.progress import Progress


@dataclass(frozen=True)
class FillRequest:
    """A picture with a hole.

    Attributes:
        color: ``[C, H, W]``, uint8, uint16, or floats in 0..1; C is 1 or 3. Values in the hole are ignored.
        hole: bool ``[H, W]``, not empty.
        seed: of the search.
        sources: bool ``[H, W]``, pixels that may be copied, none of them in the hole; None for all outside of it.
        guide: float32 ``[C, H, W]``, 0..1, a rough fill that leads the search; None for none. Values outside the hole
            are ignored.
        progress: called with the fraction of the work that is done, 0..1.
        avoid: bool ``[H, W]``, pixels not to copy at the coarsest level, if enough others are left; None for none.
    """

    color: Tensor
    hole: Tensor
    seed: int
    sources: Tensor | None = None
    guide: Tensor | None = None
    progress: Progress | None = None
    avoid: Tensor | None = None

    def report(self, done: float) -> None:
        """Report progress, if someone listens."""
        if self.progress:
            self.progress(done)
