"""``psal bench super-resolution`` on tiny networks and pictures."""

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from support.commands import Run, photo, save

from psal.experiments.super_resolution_tables import ATTENTIONS
from psal.models import CSNLN


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    for index in range(2):
        save(tmp_path / "pictures" / f"photo {index}.png", np.roll(photo(50, 62), 7 * index, 1))
    return tmp_path / "pictures"


@pytest.fixture
def bench(run_here: Run, pictures: Path, tmp_path: Path) -> Run:
    """``psal bench super-resolution`` in this process, on one thread."""
    return partial(
        run_here, "bench", "super-resolution", "--data", pictures, "--out", tmp_path / "results", "--threads", 1,
        "--crop", 16,
    )  # fmt: skip


def network(folder: Path, scale: int, trained: str = "exact") -> Path:
    torch.manual_seed(0)
    path = folder / f"{scale} {trained}.safetensors"
    weights = CSNLN(scale, width=4, depth=1).state_dict()
    save_file(weights, path, {"task": "upscale", "cross_scale": trained, "in_scale": "local5"})
    return path


def cells(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tmp_path / "results" / "super_resolution.json").read_text())["cells"]
    return found


def table_rows(output: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in output.splitlines() if "│" in line]


def test_all_attentions_and_controls_are_compared_on_crops_and_whole_pictures(
    bench: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    options = ("--weights", network(tmp_path, 2), "--weights", network(tmp_path, 2, "none"), "--part", "quality")
    done = bench(*options)
    assert (done.returncode, done.stderr) == (0, "")
    found = cells(tmp_path)
    tested = [
        (" bicubic", 2),
        (" patches", 2),
        ("exact exact", 1),
        *((f"exact {name}", 2) for name in ATTENTIONS[1:]),
        ("none none", 2),
    ]
    assert len(found) == 2 * sum(regions for _, regions in tested)
    for row, regions in tested:
        for region in ("crop", "whole")[:regions]:
            for index in range(2):
                cell = found[f"x2 {row} {region} photo {index}"]
                assert math.isfinite(cell["psnr"])
                assert -1 < cell["ssim"] < 1
    shown = {row[0]: row for row in reversed(table_rows(done.stdout))}  # the first table wins
    exact = [found[f"x2 exact exact crop photo {index}"]["psnr"] for index in range(2)]
    close = [found[f"x2 exact psal3 crop photo {index}"]["psnr"] for index in range(2)]
    difference = [a - b for a, b in zip(close, exact, strict=True)]
    assert shown["exact, all keys"][1] == f"{sum(exact) / 2:.3f}"
    assert shown["exact, all keys"][-1] == "33.383"
    assert shown["PSAL 3"][2] == f"{sum(difference) / 2:+.3f} ({min(difference):+.3f} to {max(difference):+.3f})"
    assert "branch left out, trained so" in shown
    with Image.open(tmp_path / "results" / "super_resolution_x2_strip.png") as strip:
        assert strip.size > (100, 100)
    assert bench(*options).returncode == 0
    assert cells(tmp_path) == found  # nothing is measured twice


def test_scales_have_tables_of_their_own(bench: Run, tmp_path: Path) -> None:
    weights = [option for scale in (3, 4) for option in ("--weights", network(tmp_path, scale))]
    done = bench(*weights, "--layers", "psal1,none", "--part", "quality", "--region", "whole")
    assert done.returncode == 0
    assert "× 3, whole pictures, 2 pictures" in done.stdout
    assert "× 4, whole pictures, 2 pictures" in done.stdout
    assert {name.split()[0] for name in cells(tmp_path)} == {"x3", "x4"}


def test_pictures_of_one_name_in_several_folders_are_told_apart(bench: Run, pictures: Path, tmp_path: Path) -> None:
    for folder, shift in (("night", 3), ("day", 20)):
        save(pictures / folder / "street.png", np.roll(photo(50, 62), shift, 0))
    done = bench("--weights", network(tmp_path, 2), "--layers", "none", "--part", "quality", "--region", "crop")
    assert done.returncode == 0
    found = cells(tmp_path)
    assert {name for name in found if "bicubic" in name} == {
        f"x2  bicubic crop {name}" for name in ("photo 0", "photo 1", "day/street", "night/street")
    }
    day, night = (found[f"x2  bicubic crop {name}/street"]["psnr"] for name in ("day", "night"))
    assert day != night


def test_time_and_memory_are_measured_in_processes_of_their_own(bench: Run, tmp_path: Path) -> None:
    done = bench("--weights", network(tmp_path, 2), "--layers", "psal1", "--part", "cost", "--region", "crop")
    assert (done.returncode, done.stderr) == (0, "")
    [cell] = cells(tmp_path).values()
    assert cell["size"] == [16, 16]
    assert cell["threads"] == 1
    assert cell["seconds"] > cell["branch_seconds"] > 0
    assert min(cell["peak"], cell["branch_peak"]) >= 0


def test_attentions_measured_later_join_the_table(bench: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    options = ("--weights", network(tmp_path, 2), "--part", "quality", "--region", "crop")
    assert bench(*options, "--layers", "local5,none").returncode == 0
    before = cells(tmp_path)
    done = bench(*options, "--layers", "psal1")
    assert (done.returncode, done.stderr) == (0, "")
    assert before.items() < cells(tmp_path).items()
    titles = [row[0] for row in table_rows(done.stdout)]
    assert titles == ["bicubic", "psal.upscale", "PSAL 1", "branch left out", "window of 5 × 5 keys"]


def test_other_weights_are_not_mixed_with_measured_ones(bench: Run, tmp_path: Path) -> None:
    options = ("--layers", "psal1", "--part", "quality", "--region", "crop")
    path = network(tmp_path, 2)
    assert bench("--weights", path, *options).returncode == 0
    changed = {name: x + 1 for name, x in CSNLN(2, width=4, depth=1).state_dict().items()}
    save_file(changed, path, {"task": "upscale", "cross_scale": "exact", "in_scale": "local5"})
    done = bench("--weights", path, *options)
    assert done.returncode == 2
    assert "super_resolution.json was measured with other settings (networks)" in done.stderr


def test_a_picture_set_has_a_results_file_and_tables_of_its_own(bench: Run, tmp_path: Path) -> None:
    options = ("--layers", "none", "--part", "quality", "--region", "crop", "--picture-set", "Set14")
    done = bench("--weights", network(tmp_path, 2), *options)
    assert done.returncode == 0
    assert "branch left out" in done.stdout
    names = {path.name for path in (tmp_path / "results").iterdir()}
    assert names == {"super_resolution_set14.json", "super_resolution_set14_x2_strip.png"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--picture-set", "../Set14"), "a name of letters and digits is needed for the pictures, got '../Set14'"),
        (("--layers", "psal0"), "there is no cross-scale attention named 'psal0'"),
        (("--data", "nowhere"), "nowhere is not a folder"),
        (("--weights", "missing.pt"), "missing.pt cannot be read as weights"),
        (("--weights", "{same}"), "two of the networks enlarge by 2 and were trained with exact: give one"),
        (("--in-scale", "x", "--part", "quality"), "there is no in-scale attention named 'x'"),
    ],
)
def test_wrong_usage_is_named(options: tuple[str, ...], message: str, bench: Run, tmp_path: Path) -> None:
    path = network(tmp_path, 2)
    done = bench("--weights", path, *(option.format(same=path) for option in options))
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "results").exists()
