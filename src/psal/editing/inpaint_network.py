"""Fill a hole with the trained inpainting network, the whole picture in one piece."""

from pathlib import Path

import torch
from torch import Tensor

from psal.editing.hole_filling.fill_request import FillRequest
from psal.editing.network_choice import NetworkChoice
from psal.io.pictures import to_float
from psal.models.inpainting import ContextualAttention, Generator
from psal.models.inpainting.attentions import build_inpainting_attention, label
from psal.models.inpainting.filling import attention_of, fill, needed_memory, pad_to_stride
from psal.models.inpainting.generator import STRIDE, known_features
from psal.models.inpainting.weights import load_generator
from psal.swap import swap_attention_


def fill_with_network(request: FillRequest, choice: NetworkChoice, device: torch.device) -> Tensor:
    """Fill a hole by a network.

    Args:
        request: the picture and its hole, which is not all of it; sources and guide are of no use to a network.
        choice: a file for :func:`psal.models.inpainting.weights.load_generator`, and the attention to put into the
            network, "own" for the one it was trained with.
        device: where the network runs.

    Returns:
        ``[C, H, W]``, 0..1, on the CPU.

    Raises:
        ValueError: if the weights do not fit, the hole leaves too few keys, or there is not enough memory.
    """
    color, hole = to_float(request.color).to(device), request.hole.to(device)
    network, _ = load_generator(choice.weights, seed=request.seed)
    if choice.attention != "own" and attention_of(network) is not None:
        swap_attention_(network, build_inpainting_attention(choice.attention, request.seed))
    network.to(device)
    height, width = hole.shape
    _check_memory(network, height, width, available_memory(device))
    _check_keys(network, hole)
    request.report(0.05)
    filled = fill(network, color.expand(3, -1, -1)[None], hole[None, None])[0]
    request.report(1.0)
    return (filled if len(color) == 3 else torch.where(hole, filled.mean(0, keepdim=True), color)).cpu()


def available_memory(device: torch.device) -> float:
    """Return the memory in bytes that this process can get, on the CPU without swapping; infinity if it is unknown."""
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # by torch's own allocator
        return torch.cuda.mem_get_info(device)[0] + unused
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return float("inf")


def _check_memory(network: Generator, height: int, width: int, available: float) -> None:
    needed = needed_memory(network, height, width)
    if needed <= available:
        return
    layer = attention_of(network)
    if isinstance(layer, ContextualAttention):
        name = label("contextual" if layer.method == "chunked" else "contextual-materialized").lower()
        what, advice = f"the network with {name}", 'take attention="psal3", or make the picture smaller'
    else:
        what, advice = "the network", "make the picture smaller"
    raise ValueError(
        f"{what} needs at least {needed / 1e9:.1f} GB for {width} × {height} pixels, and {available / 1e9:.1f} GB are "
        f"free: {advice}"
    )


def _check_keys(network: Generator, hole: Tensor) -> None:
    """Check that the hole leaves enough pixels of the feature maps to attend to."""
    needed = getattr(attention_of(network), "neighbors", 1)
    left = int(known_features(pad_to_stride(hole[None, None])).sum())
    if left < needed:
        raise ValueError(
            f"mask must leave at least {needed} whole squares of {STRIDE} × {STRIDE} pixels, got a mask that leaves "
            f"{left}: mark a smaller hole"
        )
