"""The paper's Tables 2 and 3: a frame rebuilt from one ten frames earlier, by every layer."""

import statistics
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from psal.data import davis
from psal.data.samples import stereo_views
from psal.experiments.cell import Setting, measure
from psal.experiments.markdown import number, origin, table
from psal.measure.record import Cell, Record
from psal.models.attentions import build_attention, label

NAME = "reconstruction"
SIZE = 512
LAYERS = ("full-stride10", "local", "linear", "performer", "reformer", "psal1", "psal3", "psal-aggregate")
STRIDES = {64: (1, 2, 5, 10), 128: (1, 2, 5, 10), 256: (1, 2, 5, 10), 512: (10,)}
PAPERS_STRIDES = {64: 1, 128: 2, 256: 5, 512: 10}
APART = 10
PATCH_SIZE = 7
TEMPERATURE = 0.01  # a distance of two grey levels in each of the 147 numbers of a patch
SEED = 0
PAPER = {
    "full-stride10": 0.0022, "local": 0.0119, "linear": 0.0576, "psal3": 0.0011, "psal-aggregate": 0.0008,
}  # fmt: skip
PAPER_BY_SIZE = {64: (0.0048, 0.0048), 128: (0.0038, 0.0029), 256: (0.0031, 0.0017), 512: (0.0022, 0.0011)}
STRIP_ZOOM = 4


class Source:
    """Pairs of pictures: of DAVIS, or without it the bundled stereo pair."""

    def __init__(self, data: Path | None, count: int) -> None:
        self.pairs = davis.pairs(data, count, APART) if data else None
        self.names = [f"{p.sequence} {p.number}" for p in self.pairs] if self.pairs else ["stereo pair"]

    def load(self, pair: int, size: int) -> tuple[Tensor, Tensor]:
        """The picture to rebuild and its reference, each ``(1, 3, size, size)`` in 0..1."""
        if self.pairs is None:
            left, right = (davis.square(view, size)[None] for view in stereo_views())
            return left, right
        found = self.pairs[pair]
        return davis.load_square(found.frame, size)[None], davis.load_square(found.reference, size)[None]


def cases(sizes: Sequence[int], layers: Sequence[str]) -> list[tuple[str, int]]:
    """Every layer at the largest size; full attention with strides, and PSAL 3, at all sizes."""
    found = [(name, max(sizes)) for name in layers]
    for size in sorted(sizes):
        strides = STRIDES.get(size, (1,))
        found += [(f"full-stride{stride}", size) for stride in strides] + [("psal3", size)]
    return list(dict.fromkeys(found))


def rebuild(name: str, picture: Tensor, reference: Tensor) -> Tensor:
    """The picture made of the reference's pixels."""
    layer = build_attention(name, channels=3, patch_size=PATCH_SIZE, temperature=TEMPERATURE, seed=SEED)
    with torch.no_grad():
        rebuilt: Tensor = layer(picture, reference, reference)
    return rebuilt


def run(
    record: Record,
    source: Source,
    layers: Sequence[str],
    sizes: Sequence[int],
    *,
    threads: int,
    progress: Callable[[int, str], None],
) -> None:
    """Measure every cell that is not in the record yet: the loss of each pair, and each layer's memory at the end.

    Args:
        record: where the cells are kept.
        source: of the pictures.
        layers: names for :func:`psal.models.attentions.build_attention`.
        sizes: sides of the pictures.
        threads: of the CPU, when memory and time are measured.
        progress: called with how many cells are done, and the next one.
    """
    done = 0
    for name, size in cases(sizes, layers):
        for pair, pair_name in enumerate(source.names):
            progress(done, f"{label(name)}, {size}², {pair_name}")
            record.keep(f"{name} {size} {pair_name}", partial(_loss, source, name, pair, size))
            done += 1
    for name in layers:
        progress(done, f"{label(name)}, memory")
        setting = Setting(name, max(sizes), channels=3, patch_size=PATCH_SIZE, threads=threads)
        record.keep(f"{name} {max(sizes)} memory", partial(measure, setting))
        done += 1
    progress(done, "")


def count_cells(source: Source, layers: Sequence[str], sizes: Sequence[int]) -> int:
    """How many cells :func:`run` measures."""
    return len(cases(sizes, layers)) * len(source.names) + len(layers)


def _loss(source: Source, name: str, pair: int, size: int) -> Cell:
    picture, reference = source.load(pair, size)
    return {"loss": (rebuild(name, picture, reference) - picture).square().mean().item()}


def losses(record: Record, name: str, size: int) -> list[float]:
    """Of all pairs."""
    return [record.cells[f"{name} {size} {pair}"]["loss"] for pair in record.settings["pairs"]]


def markdown(record: Record) -> str:
    """results/reconstruction.md."""
    settings = record.settings
    layers, sizes, names = settings["layers"], settings["sizes"], settings["pairs"]
    largest = max(sizes)
    by_layer = []
    for name in layers:
        cell = record.cells[f"{name} {largest} memory"]
        paper = f"{PAPER[name]:.4f}" if name in PAPER and largest == SIZE else ""
        by_layer.append(
            [
                label(name),
                _spread(losses(record, name, largest)),
                f"{cell['peak'] / 1e9:.2f}",
                number(cell["seconds"]),
                paper,
            ]
        )
    by_size = []
    for size in sizes:
        psal3 = losses(record, "psal3", size)
        for stride in STRIDES.get(size, (1,)):
            full = losses(record, f"full-stride{stride}", size)
            ratio = statistics.fmean(psal3) / statistics.fmean(full)
            paper = " / ".join(f"{x:.4f}" for x in PAPER_BY_SIZE[size]) if PAPERS_STRIDES.get(size) == stride else ""
            by_size.append([f"{size}²", str(stride), _spread(full), _spread(psal3), f"{ratio:.3f}", paper])
    pictures = f"{len(names)} pairs of frames {APART} apart of DAVIS" if len(names) > 1 else "the bundled stereo pair"
    return f"""\
Mean square error at {largest}², memory and time:

{table(["layer", "loss", "GB", "s", "paper's loss"], by_layer)}

Full attention with strides against PSAL 3:

{table(["size", "stride", "full attention", "PSAL 3", "PSAL 3 / full", "paper: full / PSAL 3"], by_size)}

Mean over {pictures}, and in brackets the standard deviation between pairs; the same pairs in every row. RGB in 0..1,
patches of {PATCH_SIZE}, squared distance, temperature {TEMPERATURE} for all layers that compare by it; Linear
attention, Performer and Reformer compare by dot products, as their authors have them. A picture is the largest
centred square of a frame, resized. Memory and time as in `psal bench memory`, forward, of three channels.

{origin(record.metadata)}"""


def _spread(values: list[float]) -> str:
    deviation = f" ({statistics.stdev(values):.5f})" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.5f}{deviation}"


def plot(record: Record, path: Path) -> None:
    """Loss against memory and against time, at the largest size."""
    from psal.experiments.plots import figure, save, style_of

    largest = max(record.settings["sizes"])
    canvas, axes = figure(2)
    for axis, quantity, unit, what in zip(
        axes, ("peak", "seconds"), (1e9, 1.0), ("memory, GB", "time, s"), strict=True
    ):
        for name in record.settings["layers"]:
            cell = record.cells[f"{name} {largest} memory"]
            loss = statistics.fmean(losses(record, name, largest))
            axis.plot(cell[quantity] / unit, loss, linestyle="none", markersize=8, label=label(name), **style_of(name))
        axis.set_xscale("log")
        axis.xaxis.set_minor_formatter("")  # between powers of ten labels overlap
        axis.set_yscale("log")
        axis.set_xlabel(what)
        axis.set_ylabel(f"loss at {largest}²")
    axes[1].legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    save(canvas, path)


def strip(source: Source, layers: Sequence[str], size: int, path: Path) -> None:
    """The first pair rebuilt by every layer, side by side, each with a zoom of its middle below."""
    from psal.experiments.plots import save, strip_of

    picture, reference = source.load(0, size)
    pictures = {"frame": picture, "reference": reference}
    pictures |= {label(name): rebuild(name, picture, reference) for name in layers}
    save(strip_of({title: pixels_of(x) for title, x in pictures.items()}, STRIP_ZOOM), path)


def pixels_of(x: Tensor) -> Image.Image:
    """A map ``(1, 3, H, W)`` in 0..1 as a picture."""
    return Image.fromarray((x[0].clamp(0, 1) * 255).round().byte().permute(1, 2, 0).numpy())


def settings_of(source: Source, layers: Sequence[str], sizes: Sequence[int], threads: int) -> dict[str, Any]:
    """What goes into the record beside the cells."""
    return {
        "layers": list(layers), "sizes": sorted(sizes), "pairs": source.names, "patch_size": PATCH_SIZE,
        "temperature": TEMPERATURE, "threads": threads,
    }  # fmt: skip
