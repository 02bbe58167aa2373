"""``psal bench inpainting`` and ``psal eval inpaint`` at tiny sizes."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from support.commands import Run
from support.pictures import write_pictures

from psal.experiments.inpainting import fillers
from psal.experiments.inpainting.fillers import fill_by_patches, fill_by_telea, network_filler
from psal.experiments.inpainting.pictures import MaskedPictures
from psal.experiments.layer_cost import LayerSetting, gigaflops
from psal.experiments.networks import Network

from .conftest import WriteWeights


@pytest.fixture
def bench(run_here: Run, tmp_path: Path) -> Run:
    return partial(run_here, "bench", "inpainting", "--threads", 1, "--out", tmp_path / "results")


def record(tmp_path: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tmp_path / "results" / f"{name}.json").read_text())
    return found


def test_networks_are_compared_on_pictures_with_masks(
    bench: Run, scenes: Path, write_weights: WriteWeights, tmp_path: Path
) -> None:
    first, second = write_weights("contextual"), write_weights("contextual", seed=1)
    psal3, none = write_weights("psal3"), write_weights("none")
    one = ("scenes", "--data", scenes, "--contextual", first, "--psal3", psal3)
    done = bench(*one)
    assert (done.returncode, done.stderr) == (0, "")
    cells = record(tmp_path, "inpainting_scenes")["cells"]
    networks = ["contextual contextual 0", "psal3 psal3 0", "contextual psal3 0", "contextual none 0"]
    assert [name for name in cells if name not in ("patches", "telea")] == networks
    assert {len(values) for cell in cells.values() for values in cell["scores"].values()} == {2}
    assert cells["contextual contextual 0"]["scores"]["l1"] != cells["contextual psal3 0"]["scores"]["l1"]
    for title in ("Contextual attention → PSAL 3", "psal.inpaint", "PSAL 3, in the paper", "Difference to contextual"):
        assert title in " ".join(done.stdout.replace("│", " ").split())
    with Image.open(tmp_path / "results" / "inpainting_scenes_strip.png") as strip:
        assert strip.size > (300, 300)

    more = bench(*one, "--contextual", second, "--none", none)
    assert more.returncode == 0
    both = record(tmp_path, "inpainting_scenes")["cells"]
    assert cells.items() < both.items()  # what was measured is kept
    assert {"contextual contextual 1", "none none 0"} < set(both)

    other = bench("scenes", "--data", scenes, "--contextual", second)
    assert other.returncode == 2
    assert "inpainting_scenes.json has 'contextual contextual 0' of other weights: add --overwrite" in other.stderr


def test_fills_with_and_without_a_guide_are_compared(
    bench: Run, scenes: Path, write_weights: WriteWeights, tmp_path: Path
) -> None:
    done = bench("guide", "--data", scenes)
    assert (done.returncode, done.stderr) == (0, "")
    cells = record(tmp_path, "inpainting_guide")["cells"]
    assert set(cells) == {"patches", "guided by truth"}  # no network was given
    assert cells["patches"]["scores"]["l1"] != cells["guided by truth"]["scores"]["l1"]

    done = bench("guide", "--data", scenes, "--psal3", write_weights("psal3"), "--overwrite")
    assert (done.returncode, done.stderr) == (0, "")
    cells = record(tmp_path, "inpainting_guide")["cells"]
    assert set(cells) == {"patches", "network", "guided by network", "guided by truth"}
    assert len({cell["scores"]["l1"][0] for cell in cells.values()}) == 4
    for title in ("guided by the truth at 1/8", "Difference to psal.inpaint"):
        assert title in " ".join(done.stdout.replace("│", " ").split())
    with Image.open(tmp_path / "results" / "inpainting_guide_strip.png") as strip:
        assert strip.size > (300, 300)

    other = bench("guide", "--data", scenes, "--psal3", write_weights("psal3", seed=1))
    assert other.returncode == 2
    assert "inpainting_guide.json has 'network' of other weights: add --overwrite" in other.stderr


@pytest.mark.parametrize("part", ["rectangles", "freeform"])
def test_random_holes_are_the_same_in_every_run(
    part: str, bench: Run, write_weights: WriteWeights, tmp_path: Path
) -> None:
    pictures = write_pictures(tmp_path / "pictures")
    options = (part, "--data", pictures, "--size", 40, "--hole", 16, "--psal3", write_weights("psal3"))
    done = bench(*options)
    assert (done.returncode, done.stderr) == (0, "")
    first = record(tmp_path, f"inpainting_{part}")
    assert first["settings"]["masks"] == ("free-form" if part == "freeform" else "rectangles")
    assert bench(*options, "--overwrite").returncode == 0
    again = record(tmp_path, f"inpainting_{part}")
    assert {name: cell["scores"] for name, cell in again["cells"].items()} == {
        name: cell["scores"] for name, cell in first["cells"].items()
    }


def test_a_network_is_evaluated_with_its_own_attention_and_with_another(
    run_here: Run, scenes: Path, write_weights: WriteWeights
) -> None:
    evaluate = partial(
        run_here, "eval", "inpaint", write_weights("contextual"), "--data", scenes, "--threads", 1, "--count", 2
    )
    own = evaluate()
    assert (own.returncode, own.stderr) == (0, "")
    assert [line.split(",")[0] for line in own.stdout.splitlines()] == ["l1", "l2", "PSNR", "TV", "SSIM"]
    assert evaluate("--attention", "contextual-materialized").stdout == own.stdout
    assert evaluate("--attention", "psal3").returncode == 0
    wrong = evaluate("--attention", "full")
    assert wrong.returncode == 2
    assert "there is no attention named 'full' for inpainting" in wrong.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("scenes",), "scenes needs test pictures: give their folder with --data"),
        (("rectangles", "--data", "nowhere"), "nowhere is not a folder"),
        (("scenes", "--data", "."), "does not have the folders images and masks: choose another part or folder"),
        (("scenes", "--data", "scenes", "--lpips", "nowhere"), "nowhere is not a file: get it by"),
    ],
)
def test_wrong_usage_is_named(
    options: tuple[str, ...], message: str, bench: Run, scenes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scenes.parent)
    done = bench(*options)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_weights_of_another_attention_are_not_taken_for_a_row(
    bench: Run, scenes: Path, write_weights: WriteWeights
) -> None:
    done = bench("scenes", "--data", scenes, "--psal3", write_weights("contextual"))
    assert done.returncode == 2
    assert "was trained with attention contextual, not psal3" in done.stderr


def test_a_picture_without_a_usable_mask_is_named(scenes: Path) -> None:
    mask = scenes / "masks" / "1.png"
    Image.new("L", (40, 48)).save(mask)
    with pytest.raises(ValueError, match=r"1.png must be white in a part of the picture, not in none"):
        list(MaskedPictures(scenes))
    mask.unlink()
    with pytest.raises(ValueError, match=r"images/1.png has no mask: expected .*masks/1.png"):
        list(MaskedPictures(scenes))


def test_a_mask_belongs_to_the_picture_with_exactly_its_name(scenes: Path) -> None:
    for folder in ("images", "masks"):
        (scenes / folder / "0.png").rename(scenes / folder / "street [1].png")
        (scenes / folder / "1.png").rename(scenes / folder / "street [1].left.png")
    found = {picture.name: picture.hole for picture in MaskedPictures(scenes)}
    assert {name: tuple(hole.shape[2:]) for name, hole in found.items()} == {
        "street [1]": (40, 48),
        "street [1].left": (48, 40),
    }


def test_fillers_change_the_hole_alone(scenes: Path, write_weights: WriteWeights) -> None:
    ways = [fill_by_patches, network_filler(write_weights("psal3"), Network("psal3", "psal3"))]
    if fillers.has_opencv():
        ways.append(fill_by_telea)
    for picture in MaskedPictures(scenes):
        known = ~picture.hole.expand_as(picture.truth)
        for way in ways:
            filled = way(picture.truth, picture.hole)
            assert filled[known].equal(picture.truth[known])
            assert filled.shape == picture.truth.shape


def test_telea_fills_a_flat_picture_with_its_color() -> None:
    pytest.importorskip("cv2")
    picture, hole = torch.full((1, 3, 30, 40), 0.4), torch.zeros(1, 1, 30, 40, dtype=torch.bool)
    hole[..., 10:15, 10:20] = True
    filled = fill_by_telea(torch.where(hole, 1.0, picture), hole)
    assert np.allclose(filled, 0.4, atol=0.01)


@pytest.mark.slow
def test_layers_of_the_network_are_measured(bench: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psal.experiments.inpainting.layers.LAYERS", ("contextual-materialized", "psal3"))
    done = bench("layers", "--sizes", "16")
    assert (done.returncode, done.stderr) == (0, "")
    cells = record(tmp_path, "inpainting_layers")["cells"]
    assert len(cells) == 2 * 2
    assert all(cell["peak"] > 0 and cell["seconds"] > 0 for cell in cells.values())
    assert "Contextual attention, materialized" in done.stdout
    assert (tmp_path / "results" / "inpainting_layers.png").exists()


def test_operations_grow_quadratically_with_contextual_attention_and_linearly_with_psal() -> None:
    def growth(attention: str) -> float:
        small, large = (gigaflops(LayerSetting(attention, size, 128, inpainting=True)) for size in (32, 64))
        return large / small

    assert 14 < growth("contextual-materialized") < 17
    assert 14 < growth("contextual") < 17
    assert 3.5 < growth("psal3") < 5


@pytest.mark.slow
def test_the_network_on_large_pictures_is_measured(bench: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psal.experiments.inpainting.large.SIZES", ((96, 160),))
    done = bench("large")
    assert (done.returncode, done.stderr) == (0, "")
    [cell] = record(tmp_path, "inpainting_large")["cells"].values()
    assert 0 < cell["attention_peak"] < cell["peak"]
    assert "160 × 96" in done.stdout
