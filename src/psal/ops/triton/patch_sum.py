"""Device functions: the score of two patches, one pair per lane."""

import triton
import triton.language as tl


@triton.jit
def patch_score(
    query, key, query_factor, key_factor, batch, z, y, x, kz, ky, kx, allowed, qd, qh, qw, kd, kh, kw,
    PZ: tl.constexpr, PY: tl.constexpr, PX: tl.constexpr, C: tl.constexpr, CB: tl.constexpr,
    L2: tl.constexpr, COSINE: tl.constexpr, WIDE: tl.constexpr, TYPE: tl.constexpr,
):  # fmt: skip
    """Return the scores of the queries at z, y, x and the keys at kz, ky, kx.

    All coordinates must lie in their grids. Lanes that are not ``allowed`` read no key; their scores mean nothing.
    """
    query_row, key_row = qw + PX - 1, kw + PX - 1
    query_slice, key_slice = query_row * (qh + PY - 1), key_row * (kh + PY - 1)
    query_at, key_at = z * query_slice + y * query_row + x, kz * key_slice + ky * key_row + kx  # first pixels
    if WIDE:
        query_at, key_at = query_at.to(tl.int64), key_at.to(tl.int64)
    channel = tl.arange(0, CB)[None, :]
    query_from = query + batch * (query_slice * (qd + PZ - 1)) * C + query_at[:, None] * C + channel
    key_from = key + batch * (key_slice * (kd + PZ - 1)) * C + key_at[:, None] * C + channel
    total = tl.zeros(query_from.shape, TYPE)
    for step in tl.range(PZ * PY * (C // CB)):  # a loop: unrolled, the code is seven times as long and spills
        row, c = step // (C // CB), step % (C // CB) * CB
        if WIDE:
            row = row.to(tl.int64)
        query_step = (row // PY * query_slice + row % PY * query_row) * C + c
        key_step = (row // PY * key_slice + row % PY * key_row) * C + c
        for px in tl.static_range(PX):
            q = tl.load(query_from + (query_step + px * C)).to(TYPE)
            k = tl.load(key_from + (key_step + px * C), mask=allowed[:, None], other=0).to(TYPE)
            if L2:
                difference = q - k
                total += difference * difference
            else:
                total += q * k
    found = tl.sum(total, 1)
    if L2:
        found = -found
    if COSINE:
        factor = tl.load(query_factor + batch * (qd * qh * qw) + (z * qh + y) * qw + x)
        found = found * factor * tl.load(key_factor + batch * (kd * kh * kw) + (kz * kh + ky) * kw + kx)
    return found
