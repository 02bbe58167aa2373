"""Where each pixel of a filled hole was copied from: exact, and as a file."""

import io
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from psal.editing.registry import SHIFT_MAP_SUFFIX
from psal.io.atomic import write_atomically

FORMAT = "psal shift map 1"
ARRAYS = ("format", "size", "target", "source", "opacity")


@dataclass(frozen=True, eq=False, repr=False)
class ShiftMap:
    """Where each pixel of a filled hole was copied from, as :func:`psal.inpaint` returns it.

    Positions are flat: row · width + column. What was copied was then blended, so that a fill of the same picture
    differs from the copied pixels; :func:`psal.apply_shifts` copies without blending.

    Args:
        size: height and width of the picture.
        target: int64 ``(N,)``, positions of the filled pixels, ascending.
        source: int64 ``(N,)``, position of the pixel that each was copied from.
        opacity: float32 ``(N,)``, 0..1: weight of the copied pixel against the old one; 1 unless feathered.

    Raises:
        ValueError, TypeError: if the arrays are not as described.

    >>> shifts = ShiftMap((2, 3), np.array([4]), np.array([2]), np.ones(1, np.float32))
    >>> shifts
    <ShiftMap 3 × 2, 1 pixel>
    >>> shifts.sources()[1, 1]
    array([0, 2])
    """

    size: tuple[int, int]
    target: NDArray[np.int64]
    source: NDArray[np.int64]
    opacity: NDArray[np.float32]

    def __post_init__(self) -> None:
        height, width = self.size
        for name in ("target", "source"):
            places = getattr(self, name)
            if not isinstance(places, np.ndarray) or places.dtype != np.int64 or places.ndim != 1:
                raise TypeError(f"{name} must be an int64 array (N,), got {_kind(places)}")
            if len(places) and not (places.min() >= 0 and places.max() < height * width):
                raise ValueError(f"{name} must lie in a picture of {width} × {height} pixels")
        if (np.diff(self.target) <= 0).any():
            raise ValueError("target must be ascending")
        opacity = self.opacity
        if not isinstance(opacity, np.ndarray) or opacity.dtype != np.float32:
            raise TypeError(f"opacity must be a float32 array (N,), got {_kind(opacity)}")
        if not len(self.target) == len(self.source) == len(opacity) or opacity.ndim != 1:
            raise ValueError("target, source and opacity must have one entry for each filled pixel")
        if not ((opacity >= 0) & (opacity <= 1)).all():
            raise ValueError("opacity must be in 0..1")

    def sources(self) -> NDArray[np.int64]:
        """Row and column that each pixel came from, int64 ``(H, W, 2)``; its own outside the hole."""
        height, width = self.size
        index = np.arange(height * width)
        index[self.target] = self.source
        return np.stack(np.unravel_index(index, self.size), -1).reshape(height, width, 2)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the map atomically as a NumPy archive (.npz), without loss; its size grows with the hole.

        The archive holds ``format``, ``size`` (height, width), ``target``, ``source`` and ``opacity``.

        Raises:
            ValueError: if the name does not end in .npz.
            OSError: if the file cannot be written.
        """
        if Path(path).suffix.lower() != SHIFT_MAP_SUFFIX:
            raise ValueError(f"{path} cannot be written: let the name of a shift map end in {SHIFT_MAP_SUFFIX}")
        content = io.BytesIO()
        fields: dict[str, Any] = {name: getattr(self, name) for name in ARRAYS[1:]}
        np.savez_compressed(content, format=np.array(FORMAT), **fields)
        write_atomically(Path(path), content.getvalue())

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Read a map that :meth:`save` wrote.

        Raises:
            OSError: if the file does not exist or cannot be read.
            ValueError: if it is not such a map; the message names the file.
        """
        try:
            with np.load(path, allow_pickle=False) as archive:
                if not isinstance(archive, np.lib.npyio.NpzFile) or str(archive["format"]) != FORMAT:
                    raise ValueError("another format")
                size, target, source, opacity = (archive[name] for name in ARRAYS[1:])
            height, width = (int(side) for side in size)
            return cls((height, width), target, source, opacity)
        except FileNotFoundError:
            raise FileNotFoundError(f"{path}: there is no such file") from None
        except IsADirectoryError:
            raise IsADirectoryError(f"{path} is a folder: give a file") from None
        except (ValueError, TypeError, KeyError, AttributeError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"{path} is damaged, or not a shift map: give a file that psal inpaint --shifts wrote"
            ) from error

    def __repr__(self) -> str:
        count = len(self.target)
        return f"<ShiftMap {self.size[1]} × {self.size[0]}, {count} pixel{'' if count == 1 else 's'}>"


def empty_map(height: int, width: int) -> ShiftMap:
    """Map of a picture without a hole."""
    nowhere = np.empty(0, np.int64)
    return ShiftMap((height, width), nowhere, nowhere, np.empty(0, np.float32))


def _kind(x: Any) -> str:
    return f"{x.dtype} {x.shape}" if isinstance(x, np.ndarray) else type(x).__name__
