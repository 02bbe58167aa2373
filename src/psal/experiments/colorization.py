"""Colorization networks that differ in their attention alone: train them, test them, measure their layers."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from psal.data import davis
from psal.experiments.colorization_tables import COMPARISONS, SPLITS, Comparison, losses, seeds_of
from psal.experiments.experiment import Progress
from psal.experiments.layer_cost import LayerSetting, gigaflops, measure
from psal.experiments.networks import Network, cell_name
from psal.measure.record import Cell, Record
from psal.models.attentions import build_attention, label
from psal.models.colorizer import CHANNELS
from psal.models.colorizer_weights import PATCH_SIZE, load_colorizer
from psal.swap import swap_attention_
from psal.training.colorize import DISTANCES, ColorizeTask, errors_on_split, gray_of, load_frames
from psal.training.loop import WEIGHTS, train
from psal.training.settings import Settings


@dataclass(frozen=True)
class ColorizationExperiment:
    """Networks of one comparison.

    Attributes:
        table: key of :data:`psal.experiments.colorization_tables.COMPARISONS`.
        data: DAVIS's folder.
        runs: folder of the training runs; interrupted ones are resumed.
        size: side of the pictures.
        iterations: training steps of each network.
        seeds: number of times each PSAL network is trained.
        threads: number of CPU threads for time and memory.
        layers: measure only networks that are trained with these; None measures all.
    """

    table: str
    data: Path
    runs: Path
    size: int
    iterations: int
    seeds: int
    threads: int
    layers: Sequence[str] | None = None

    @property
    def name(self) -> str:
        return f"colorization_{self.table}"

    @property
    def comparison(self) -> Comparison:
        return COMPARISONS[self.table]

    @property
    def networks(self) -> list[Network]:
        """Networks to measure."""
        return [n for n in self.comparison.networks if self.layers is None or n.trained in self.layers]

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "table": self.table, "rows": [list(network) for network in self.comparison.networks], "size": self.size,
            "iterations": self.iterations, "patch_size": PATCH_SIZE, "threads": self.threads,
        }  # fmt: skip

    @property
    def step_count(self) -> int:
        """Training steps of all networks."""
        return sum(self.iterations * len(seeds_of(network, self.seeds)) for network in self.networks)

    def run(self, record: Record, progress: Progress) -> None:
        done = 0
        record.measure_once("gray", lambda: self._test(lambda gray, _: gray.expand(-1, 3, -1, -1)))
        for network in self.networks:
            for seed in seeds_of(network, self.seeds):
                report = partial(_report_step, progress, done, f"{label(network.trained)}, seed {seed}")
                record.measure_once(cell_name(network, seed), partial(self._train_and_test, network, seed, report))
                done += self.iterations
            progress(done, f"{label(network.tested)}, memory")
            record.measure_once(f"{network.tested} cost", partial(self._cost, network.tested))

    def _train_and_test(self, network: Network, seed: int, report: Callable[[int, float], None]) -> Cell:
        task = ColorizeTask(self.data, _layer_at(network.trained, self.size), self.size, seed)
        outcome = train(task, Settings(self.iterations, seed=seed), self._folder(network, seed), report)
        cell = self._test(self._load(network, seed))
        return cell | {"left_out": outcome.complaints} if outcome.complaints else cell

    def _folder(self, network: Network, seed: int) -> Path:
        return self.runs / f"{network.trained}_{self.size}_{self.iterations}_{seed}"

    def _load(self, network: Network, seed: int) -> nn.Module:
        """A trained network, with the layer it is tested with."""
        model, _ = load_colorizer(self._folder(network, seed) / WEIGHTS)
        if network.trained != network.tested:
            layer = build_attention(_layer_at(network.tested, self.size), channels=CHANNELS, patch_size=PATCH_SIZE)
            swap_attention_(model, layer)
        return model

    def _test(self, model: Callable[[Tensor, Tensor], Tensor]) -> Cell:
        cell: Cell = {}
        for split in SPLITS:
            if not davis.sequences(self.data, split):  # too few to hold one out
                continue
            errors = errors_on_split(model, self.data, split, self.size)
            cell[split] = {
                "loss": statistics.fmean(x for found in errors.values() for x in found),
                "by_distance": {str(distance): statistics.fmean(found) for distance, found in errors.items()},
            }
        return cell

    def _cost(self, attention: str) -> Cell:
        setting = LayerSetting(_layer_at(attention, self.size), self.size, threads=self.threads)
        return measure(setting) | {"gigaflops": gigaflops(setting)}

    def draw(self, record: Record, folder: Path) -> list[str]:
        """Plot loss against memory and operations, and draw a test frame colorized by each network."""
        self._plot(record, folder / f"{self.name}.png")
        warnings = [f"{line} (left out)" for line in _left_out(record)]
        path = folder / f"{self.name}_strip.png"
        weights = [self._folder(network, 0) / WEIGHTS for network in _measured(record, self.comparison)]
        missing = [file for file in weights if not file.exists()]
        if missing:  # results are kept longer than the training runs behind them
            return [f"{path} is not drawn: {missing[0]} does not exist any more", *warnings]
        self._draw_strip(path, _measured(record, self.comparison))
        return warnings

    def _plot(self, record: Record, path: Path) -> None:
        from psal.experiments.plots import MEMORY, OPERATIONS, figure, legend, plot_loss_against, save

        networks = [n for n in _measured(record, self.comparison) if n.trained == n.tested]
        canvas, axes = figure(2)
        for axis, cost in zip(axes, (MEMORY, OPERATIONS), strict=True):
            points = {
                n.tested: (record.cells[f"{n.tested} cost"][cost.key], statistics.median(losses(record, n, "val")))
                for n in networks
            }
            plot_loss_against(cost, axis, points, [label(name) for name in points])
            axis.set_xlabel(f"{cost.title} (attention layer)")
            axis.set_ylabel("loss on val")
        legend(axes)
        save(canvas, path)

    def _draw_strip(self, path: Path, networks: list[Network]) -> None:
        """Colorize a test frame from its most distant reference."""
        from psal.experiments.plots import save_strip

        _, pair = max(davis.distant_pairs(self.data, "val", DISTANCES), key=lambda found: found[0])
        frame, reference = load_frames(pair, self.size)
        gray = gray_of(frame)
        images = {"frame": frame, "reference": reference, "gray": gray.expand_as(frame)}
        for network in networks:
            model = self._load(network, 0)
            with torch.no_grad(), torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                images[network.title(label)] = model(gray, reference)
        save_strip(images, path)


def _layer_at(name: str, size: int) -> str:
    """The layer a name stands for at a size: local attention sees the same share of the picture as in the paper."""
    return f"local{round(50 * size / 256)}" if name == "local" else name


def _measured(record: Record, comparison: Comparison) -> list[Network]:
    """Networks of a comparison that have been measured with at least one seed."""
    return [network for network in comparison.networks if losses(record, network, "val")]


def _report_step(progress: Progress, before: int, what: str, step: int, loss: float) -> None:
    progress(before + step, f"{what}, loss {loss:.5f}")


def _left_out(record: Record) -> list[str]:
    """A line for each frame that training could not read."""
    return list(dict.fromkeys(line for cell in record.cells.values() for line in cell.get("left_out", [])))
