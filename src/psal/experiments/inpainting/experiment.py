"""Table 6: metrics of each way to fill holes, over a folder of pictures."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from psal.data.image_folder import fingerprint
from psal.errors import UsageError
from psal.experiments.experiment import Progress
from psal.experiments.inpainting.fillers import Filler, fill_by_patches, fill_by_telea, has_opencv, network_filler
from psal.experiments.inpainting.lpips import LPIPS
from psal.experiments.inpainting.pictures import MaskedPictures
from psal.experiments.inpainting.scoring import draw_strip, filled_by, scores_of_pictures
from psal.experiments.inpainting.tables import NETWORKS, WITHOUT_TRAINING, title
from psal.experiments.networks import Network, cell_name
from psal.measure.record import Cell, Record
from psal.training.loop import weights_of


@dataclass(frozen=True)
class InpaintingExperiment:
    """Fill the holes of test pictures by networks and by methods without training.

    Attributes:
        table: name of the set of test pictures: "scenes", "rectangles" or "freeform".
        pictures: the test pictures.
        runs: folders of training runs or files of weights, by the attention they were trained with; one per seed.
        lpips: network for the perceptual distance; None leaves it out.
    """

    table: str
    pictures: MaskedPictures
    runs: Mapping[str, Sequence[Path]]
    lpips: LPIPS | None = None

    @property
    def name(self) -> str:
        return f"inpainting_{self.table}"

    @property
    def settings(self) -> dict[str, Any]:
        own = self.pictures.has_masks
        return {
            "set": self.table,
            "pictures": len(self.pictures),
            "files": fingerprint(self.pictures.folder, self.pictures.files()),
            "size": None if own else self.pictures.size,
            "hole": None if own else self.pictures.hole,
            "masks": "own" if own else self.pictures.masks,
            "lpips": self.lpips is not None,
        }

    @property
    def step_count(self) -> int:
        return len(self._cells()) * len(self.pictures)

    def _networks(self, max_seeds: int | None = None) -> dict[str, tuple[Network, Path]]:
        """Network and weights of each cell that needs weights, by its name."""
        return {
            cell_name(network, seed): (network, weights_of(run))
            for network in NETWORKS
            for seed, run in enumerate(self.runs.get(network.trained, ())[:max_seeds])
        }

    def _cells(self, max_seeds: int | None = None) -> dict[str, tuple[str, Callable[[], Filler]]]:
        """Title and filler of each cell, by its name."""
        cells: dict[str, tuple[str, Callable[[], Filler]]] = {}
        for name, (network, weights) in self._networks(max_seeds).items():
            cells[name] = title(network), partial(network_filler, weights, network)
        cells["patches"] = WITHOUT_TRAINING["patches"], lambda: fill_by_patches
        if has_opencv():
            cells["telea"] = WITHOUT_TRAINING["telea"], lambda: fill_by_telea
        return cells

    def run(self, record: Record, progress: Progress) -> None:
        """Measure every cell that the record lacks.

        Raises:
            UsageError: if a cell was measured with other weights.
        """
        identities = {name: identity_of(weights) for name, (_, weights) in self._networks().items()}
        check_same_weights(record, identities)
        done = 0
        for name, (shown, filler) in self._cells().items():

            def report(count: int, before: int = done, text: str = shown) -> None:
                progress(before + count, text)

            record.measure_once(name, partial(self._measure, filler, report, identities.get(name, {})))
            done += len(self.pictures)
        progress(done, "")

    def _measure(self, build: Callable[[], Filler], report: Callable[[int], None], identity: Cell) -> Cell:
        return identity | {"scores": scores_of_pictures(partial(filled_by, build()), self.pictures, self.lpips, report)}

    def draw(self, record: Record, folder: Path) -> list[str]:
        """Draw some pictures filled by each method, with the first seed of each network."""
        path = folder / f"{self.name}_strip.png"
        missing = [weights_of(run) for runs in self.runs.values() for run in runs if not weights_of(run).exists()]
        if missing:  # results are kept longer than the training runs behind them
            return [f"{path} is not drawn: {missing[0]} does not exist any more"]
        fills = {shown: partial(filled_by, build()) for shown, build in self._cells(max_seeds=1).values()}
        draw_strip(fills, self.pictures, path)
        return []


def identity_of(weights: Path) -> Cell:
    """Return what tells a file of weights from others; nothing if it does not exist any more."""
    if not weights.exists():
        return {}
    with weights.open("rb") as file:
        return {"weights": hashlib.file_digest(file, "sha256").hexdigest()[:16]}


def check_same_weights(record: Record, identities: Mapping[str, Cell]) -> None:
    """Check that no cell was measured with other weights.

    Args:
        record: the results.
        identities: of the weights of each cell, by its name; see :func:`identity_of`.

    Raises:
        UsageError: if one was.
    """
    for name, identity in identities.items():
        if identity and name in record.cells and record.cells[name].get("weights") != identity["weights"]:
            raise UsageError(
                f"{record.path} has {name!r} of other weights: "
                "add --overwrite to measure again, or choose another folder"
            )
