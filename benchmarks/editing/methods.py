"""The ways of filling a hole that are compared. Each imports its package when it is built, and nothing else."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]  # (H, W, 3), RGB
Mask = NDArray[np.bool_]  # (H, W), True in the hole
Fill = Callable[[Pixels, Mask], Pixels]

SEED = 0
TELEA_RADIUS = 3  # pixels, OpenCV's usual one


@dataclass(frozen=True)
class Method:
    """A way of filling a hole.

    Attributes:
        title: name in the table.
        module: what it imports.
        build: returns the function that fills; called once in a process of its own.
        threads: number of threads; it is bound to as many cores.
        is_slow: fills fewer pictures than the others.
    """

    title: str
    module: str
    build: Callable[[int], Fill]
    threads: int = 1
    is_slow: bool = False

    @property
    def is_installed(self) -> bool:
        return find_spec(self.module) is not None


def psal(threads: int) -> Fill:
    from psal.waiting import let_threads_sleep

    let_threads_sleep()  # as on the command line; it has no effect once torch is loaded
    import torch

    from psal import inpaint

    torch.set_num_threads(threads)
    return lambda image, hole: inpaint(image, hole, seed=SEED)


def pypatchmatch(threads: int, radius: int) -> Fill:
    """Its ``patch_size`` is the radius of its patches. It is single-threaded."""
    from patchmatch import patch_match

    patch_match.set_random_seed(SEED)
    return lambda image, hole: patch_match.inpaint(image, _mask_of(hole), patch_size=radius)


def patchmatch_cython(threads: int, **options: Any) -> Fill:
    """Its ``patch_size`` is the side of its patches. It is single-threaded."""
    from patchmatch_cython import inpaint_pyramid

    return lambda image, hole: inpaint_pyramid(image, hole, seed=SEED, **options)


def telea(threads: int) -> Fill:
    import cv2

    cv2.setNumThreads(threads)
    return lambda image, hole: np.asarray(cv2.inpaint(image, _mask_of(hole), TELEA_RADIUS, cv2.INPAINT_TELEA), np.uint8)


def shift_map(threads: int) -> Fill:
    """He and Sun 2012; OpenCV expects Lab."""
    import cv2

    cv2.setNumThreads(threads)

    def fill(image: Pixels, hole: Mask) -> Pixels:
        lab = np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2Lab), np.uint8)
        filled = cv2.cvtColor(_xphoto(lab, hole, cv2.xphoto.INPAINT_SHIFTMAP), cv2.COLOR_Lab2RGB)
        return np.asarray(filled, np.uint8)

    return fill


def frequency_selective(threads: int) -> Fill:
    """Frequency selective reconstruction; OpenCV expects BGR."""
    import cv2

    cv2.setNumThreads(threads)
    return lambda image, hole: _xphoto(
        np.ascontiguousarray(image[..., ::-1]), hole, cv2.xphoto.INPAINT_FSR_FAST
    )[..., ::-1]  # fmt: skip


def _xphoto(image: Pixels, hole: Mask, algorithm: int) -> Pixels:
    """Its mask is that of the known pixels."""
    import cv2

    filled = image.copy()
    cv2.xphoto.inpaint(image, _mask_of(~hole), filled, algorithm)
    return filled


def biharmonic(threads: int) -> Fill:
    from skimage.restoration import inpaint_biharmonic

    def fill(image: Pixels, hole: Mask) -> Pixels:
        filled = inpaint_biharmonic(image, hole, channel_axis=2, split_into_regions=True)
        result: Pixels = (filled * 255).round().clip(0, 255).astype(np.uint8)
        return result

    return fill


def _mask_of(area: Mask) -> NDArray[np.uint8]:
    return area.astype(np.uint8) * 255


METHODS = {  # the first is what the others are compared with
    "psal": Method("psal, one thread", "psal", psal),
    "psal_two_threads": Method("psal, two threads", "psal", psal, threads=2),
    "pypatchmatch_3": Method("pypatchmatch, radius 3 (7 × 7)", "patchmatch", partial(pypatchmatch, radius=3)),
    "pypatchmatch_7": Method("pypatchmatch, radius 7 (15 × 15)", "patchmatch", partial(pypatchmatch, radius=7)),
    "pypatchmatch_15": Method(
        "pypatchmatch, radius 15 (31 × 31, its default)", "patchmatch", partial(pypatchmatch, radius=15), is_slow=True
    ),
    "patchmatch_cython": Method("patchmatch-cython, defaults (5 × 5)", "patchmatch_cython", patchmatch_cython),
    "patchmatch_cython_tuned": Method(
        "patchmatch-cython, tuned (7 × 7)",
        "patchmatch_cython",
        partial(patchmatch_cython, patch_size=7, em_loops=2),  # tuned on five of photos/train, among six settings
    ),
    "shift_map": Method("OpenCV xphoto, SHIFTMAP", "cv2", shift_map, is_slow=True),
    "frequency_selective": Method("OpenCV xphoto, FSR_FAST", "cv2", frequency_selective),
    "telea": Method(f"OpenCV, Telea, radius {TELEA_RADIUS}", "cv2", telea),
    "biharmonic": Method("scikit-image, biharmonic", "skimage", biharmonic),
}
