"""Parts of GMFlow that are not replaced, computed in bands so that their memory grows linearly.

The formulas are the network's. Its own code holds windows of attention scores and 81 feature vectors per pixel: tens of
GB at 4K. Every row of the experiment uses these functions, whatever attention is in the network.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

MAX_SCORES = 2**24  # attention scores or values held at once: 64 MB in float32
OTHER_REGION = -100.0  # added to the scores of pairs from different regions of a shifted window
OUTSIDE = -1e9  # score of a position beyond the border in local matching


def regions(
    input_resolution: tuple[int, int],
    window_size_h: int,
    window_size_w: int,
    shift_size_h: int,
    shift_size_w: int,
    device: torch.device,
) -> Tensor:
    """Label the regions of shifted windows that were not neighbors before the shift.

    It takes the place of the network's ``generate_shift_window_attn_mask``, whose mask of all pairs follows from it.

    Returns:
        ``(K · K, L)``, a label for each of the L tokens of each of the windows.
    """
    height, width = input_resolution
    rows, columns = torch.arange(height, device=device), torch.arange(width, device=device)
    row = (rows >= height - window_size_h).int() + (rows >= height - shift_size_h).int()
    column = (columns >= width - window_size_w).int() + (columns >= width - shift_size_w).int()
    labels = 3 * row[:, None] + column  # [H, W]
    return _windows(labels[None, :, :, None], width // window_size_w)[:, :, 0]


def window_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    num_splits: int = 1,
    with_shift: bool = False,
    h: int | None = None,
    w: int | None = None,
    attn_mask: Tensor | None = None,
) -> Tensor:
    """Attend inside the windows of a grid.

    It takes the place of the network's ``single_head_split_window_attention``.

    Args:
        q, k, v: ``(B, H · W, C)``.
        num_splits: K, the windows along each axis.
        with_shift: whether the windows are shifted by half of their size.
        h, w: H and W.
        attn_mask: result of :func:`regions`; used by shifted windows.

    Returns:
        ``(B, H · W, C)``
    """
    assert h is not None
    assert w is not None
    batch, _, channels = q.shape
    shift = (h // num_splits // 2, w // num_splits // 2) if with_shift else (0, 0)
    maps = (x.view(batch, h, w, channels).roll((-shift[0], -shift[1]), (1, 2)) for x in (q, k, v))
    query, key, value = (_windows(x, num_splits) for x in maps)  # each [B · K · K, L, C]
    out = torch.empty_like(value)
    for windows in _parts(len(query), query.shape[1] ** 2):
        labels = attn_mask.repeat(batch, 1)[windows] if with_shift and attn_mask is not None else None  # [n, L]
        for rows in _parts(query.shape[1], len(query[windows]) * query.shape[1]):
            bias = None
            if labels is not None:
                differ = labels[:, rows, None] != labels[:, None]  # [n, rows, L]
                bias = query.new_zeros(differ.shape).masked_fill(differ, OTHER_REGION)[:, None]
            attended = F.scaled_dot_product_attention(
                query[windows, None, rows], key[windows, None], value[windows, None], attn_mask=bias
            )
            out[windows, rows] = attended[:, 0]
    windows_of_rows = out.view(batch, num_splits, num_splits, h // num_splits, w // num_splits, channels)
    merged = windows_of_rows.transpose(2, 3).reshape(batch, h, w, channels)
    return merged.roll(shift, (1, 2)).flatten(1, 2)


def _windows(x: Tensor, splits: int) -> Tensor:
    """Split ``(B, H, W, C)`` into windows: ``(B · K · K, L, C)``."""
    batch, height, width, channels = x.shape
    split = x.view(batch, splits, height // splits, splits, width // splits, channels)
    return split.transpose(2, 3).reshape(batch * splits**2, -1, channels)


def local_matching(feature0: Tensor, feature1: Tensor, local_radius: int) -> tuple[Tensor, None]:
    """Find each pixel's flow by softmax over a window of the other frame.

    It takes the place of the network's ``local_correlation_softmax``.

    Args:
        feature0, feature1: ``(B, C, H, W)``.
        local_radius: the window's radius, in pixels.

    Returns:
        flow ``(B, 2, H, W)``, and None in place of the weights.
    """
    height, width = feature0.shape[2:]
    offsets = list(_offsets(local_radius))
    inside = _shifted_stack(feature0.new_ones(1, 1, height, width), local_radius)[:, 0]  # [1, D, H, W]
    value = feature0.new_tensor(offsets).T[None, :, :, None, None]  # [1, 2, D, 1, 1]
    flow = feature0.new_empty(len(feature0), 2, height, width)
    for rows, scores in _local_scores(feature0, feature1, local_radius):
        weights = scores.masked_fill(inside[:, :, rows] == 0, OUTSIDE).softmax(1)  # [B, D, rows, W]
        flow[:, :, rows] = (weights[:, None] * value).sum(2)
    return flow, None


def local_propagation(query: Tensor, key: Tensor, flow: Tensor, radius: int) -> Tensor:
    """Average flow over a window by similarity; positions beyond the border take part with features and flow 0.

    It computes what the network's ``FeatureFlowAttention.forward_local_window_attn`` does.

    Args:
        query, key: ``(B, C, H, W)``.
        flow: ``(B, 2, H, W)``.
        radius: the window's radius, in pixels.

    Returns:
        ``(B, 2, H, W)``
    """
    flows = _shifted_stack(flow, radius)  # [B, 2, D, H, W]
    out = torch.empty_like(flow)
    for rows, scores in _local_scores(query, key, radius):
        out[:, :, rows] = (scores.softmax(1)[:, None] * flows[:, :, :, rows]).sum(2)
    return out


def _local_scores(query: Tensor, key: Tensor, radius: int) -> Iterator[tuple[slice, Tensor]]:
    """Yield bands of rows, and their scaled dot products with the keys of a window, ``(B, D, rows, W)``."""
    batch, channels, height, width = query.shape
    padded = F.pad(key, [radius] * 4)
    for rows in _parts(height, 16 * batch * channels * width):  # small enough for the cache
        band = query[:, :, rows] * channels**-0.5  # [B, C, rows, W]
        count = band.shape[2]
        products = [
            (band * padded[:, :, rows.start + y + radius :, x + radius :][:, :, :count, :width]).sum(1)
            for x, y in _offsets(radius)
        ]
        yield rows, torch.stack(products, 1)


def _shifted_stack(x: Tensor, radius: int) -> Tensor:
    """Stack a map ``(B, C, H, W)`` shifted by each offset, with zeros beyond its border: ``(B, C, D, H, W)``."""
    height, width = x.shape[2:]
    padded = F.pad(x, [radius] * 4)
    shifted = [padded[:, :, y + radius :, x + radius :][:, :, :height, :width] for x, y in _offsets(radius)]
    return torch.stack(shifted, 2)


def _offsets(radius: int) -> Iterator[tuple[int, int]]:
    """Yield x and y of every position of a window, relative to its center."""
    span = range(-radius, radius + 1)
    return ((x, y) for y in span for x in span)


def _parts(count: int, size: int) -> Iterator[slice]:
    """Cut ``count`` things of ``size`` elements each into parts of at most MAX_SCORES elements, at least one thing."""
    step = max(1, MAX_SCORES // size)
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


class TokenBands(nn.Module):
    """A network of the tokens ``(B, N, C)``, each by itself, applied to a band of them at a time."""

    def __init__(self, module: nn.Sequential) -> None:
        super().__init__()
        self.module = module
        self._width = max(layer.out_features for layer in module if isinstance(layer, nn.Linear))

    def forward(self, tokens: Tensor) -> Tensor:
        bands = _parts(tokens.shape[1], len(tokens) * self._width)
        return torch.cat([self.module(tokens[:, band]) for band in bands], 1)
