"""Device functions: which pixels a program computes, and coordinates of flat indices.

Grids are given by their sizes ``depth, height, width``. ``DIMS`` says how many of them are real; the others are 1.
"""

import triton
import triton.language as tl


@triton.jit
def tile_of(tile, depth, height, width, TZ: tl.constexpr, TY: tl.constexpr, TX: tl.constexpr):
    """Return the coordinates of a tile's pixels, one per lane, and which exist; the others are moved to the border."""
    across, down = tl.cdiv(width, TX), tl.cdiv(height, TY)
    lane = tl.arange(0, TZ * TY * TX)
    x = (tile % across) * TX + lane % TX
    y = (tile // across) % down * TY + lane // TX % TY
    z = tile // (across * down) * TZ + lane // (TX * TY)
    exists = (z < depth) & (y < height) & (x < width)
    return tl.minimum(z, depth - 1), tl.minimum(y, height - 1), tl.minimum(x, width - 1), exists


@triton.jit
def tile_count(depth, height, width, TZ: tl.constexpr, TY: tl.constexpr, TX: tl.constexpr):
    """Return how many tiles cover a grid."""
    return tl.cdiv(depth, TZ) * tl.cdiv(height, TY) * tl.cdiv(width, TX)


@triton.jit
def unflatten(index, height, width, DIMS: tl.constexpr):
    """Return the coordinates of flat indices, which must not be negative."""
    if DIMS == 1:
        return tl.zeros_like(index), tl.zeros_like(index), index
    row = index // width
    x = index - row * width
    if DIMS == 2:
        return tl.zeros_like(index), row, x
    z = row // height
    return z, row - z * height, x


@triton.jit
def inside(z, y, x, depth, height, width):
    """Return which coordinates lie in a grid."""
    return (z >= 0) & (z < depth) & (y >= 0) & (y < height) & (x >= 0) & (x < width)


@triton.jit
def offset_of(number, PY: tl.constexpr, PX: tl.constexpr):
    """Return the coordinates of a pixel of a patch, counted from its first one."""
    return number // (PY * PX), number // PX % PY, number % PX
