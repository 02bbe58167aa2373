"""The super-resolution task: its runs, and the evaluation of trained networks."""

import math
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from support.commands import Run, photo, save
from support.training_runs import assert_same_weights, losses
from torch import nn

from psal.data.degradation import downscale
from psal.training.upscale import Architecture, UpscaleTask, bicubic, load_pair, quality

SIZE = 16
NETWORK = ("--width", 4, "--depth", 1, "--size", SIZE, "--batch", 1, "--threads", 1)


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    for index in range(3):
        save(tmp_path / "photographs" / f"{index}.png", np.roll(photo(61, 74), 9 * index, 1))
    return tmp_path / "photographs"


@pytest.fixture
def train_upscale(run_here: Run, photographs: Path) -> Run:
    """``psal train upscale`` in this process: ``train_upscale(out, *options)``."""
    return partial(run_here, "train", "upscale", *NETWORK, "--data", photographs, "--out")


@pytest.mark.parametrize(("scale", "cross_scale"), [(2, "exact"), (3, "psal3")])
def test_a_resumed_run_ends_with_the_same_bits(
    scale: int, cross_scale: str, train_upscale: Run, tmp_path: Path
) -> None:
    options = ("--scale", scale, "--cross-scale", cross_scale, "--in-scale", "local5")
    whole = train_upscale(tmp_path / "whole", "--iterations", 3, *options)
    assert (whole.returncode, whole.stderr) == (0, "")
    assert train_upscale(tmp_path / "parts", "--iterations", 2, *options).returncode == 0
    second = train_upscale(tmp_path / "parts", "--iterations", 3, *options)
    assert re.match(r"3 steps, resumed at step 2, loss 0\.\d{5}, \S+ s per step; written to ", second.stdout)
    assert_same_weights(tmp_path / "parts", tmp_path / "whole")
    with Image.open(tmp_path / "whole" / "look_000003.png") as picture:
        assert picture.size == (3 * scale * SIZE, 3 * scale * SIZE)


def test_a_run_can_start_from_the_weights_of_another_one(train_upscale: Run, tmp_path: Path) -> None:
    assert train_upscale(tmp_path / "first", "--iterations", 2).returncode == 0
    for start in (tmp_path / "first", tmp_path / "first" / "model.safetensors"):
        run = tmp_path / f"from {start.name}"
        options = ("--start", start, "--iterations", 1, "--learning-rate", 1e-30, "--seed", 7)
        assert train_upscale(run, *options).returncode == 0
        assert_same_weights(run, tmp_path / "first")


def test_weights_of_another_network_are_refused_as_a_start(train_upscale: Run, tmp_path: Path) -> None:
    assert train_upscale(tmp_path / "first", "--iterations", 1).returncode == 0
    done = train_upscale(tmp_path / "second", "--iterations", 1, "--start", tmp_path / "first", "--width", 6)
    assert done.returncode == 2
    assert "model.safetensors does not fit the network: of another shape: " in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "second").exists()


def test_weights_that_add_to_another_enlargement_are_refused_as_a_start(train_upscale: Run, tmp_path: Path) -> None:
    assert train_upscale(tmp_path / "first", "--iterations", 1, "--no-residual").returncode == 0
    done = train_upscale(tmp_path / "second", "--iterations", 1, "--start", tmp_path / "first")
    assert done.returncode == 2
    assert "model.safetensors was trained with --no-residual: give --no-residual here, too" in done.stderr
    assert not (tmp_path / "second").exists()


def test_training_lowers_the_loss(train_upscale: Run, tmp_path: Path) -> None:
    options = ("--iterations", 100, "--learning-rate", 0.01, "--cross-scale", "psal3", "--no-residual")
    assert train_upscale(tmp_path / "run", *options).returncode == 0
    first, last = (float(value) for _, value in losses(tmp_path / "run"))
    assert last < 0.8 * first


def test_residual_networks_start_close_to_bicubic_enlargement(photographs: Path) -> None:
    torch.manual_seed(0)
    losses = []
    for residual in (True, False):
        task = UpscaleTask(photographs, Architecture(2, 4, 1, "psal3", "local5", residual), SIZE, seed=0)
        losses.append(task.loss(task.build(), task.example(0)).item())
    assert losses[0] < 0.7 * losses[1]


def test_bfloat16_trains(train_upscale: Run, tmp_path: Path) -> None:
    done = train_upscale(tmp_path / "run", "--iterations", 2, "--precision", "bf16-mixed")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(math.isfinite(float(loss)) for _, loss in losses(tmp_path / "run"))


def test_unusable_photographs_are_named_skipped_and_counted(
    train_upscale: Run, photographs: Path, tmp_path: Path
) -> None:
    (photographs / "0.png").write_bytes(b"x")
    save(photographs / "1.png", photo(31, 99))
    done = train_upscale(tmp_path / "run", "--iterations", 12)
    assert done.returncode == 0
    assert f"warning: {photographs / '0.png'} cannot be read" in done.stderr
    assert f"warning: {photographs / '1.png'} is smaller than a crop of 32 × 32 pixels (skipped)" in done.stderr
    assert done.stderr.endswith("warning: skipped 2 photographs\n")


def test_a_run_with_another_network_or_other_photographs_is_refused(
    train_upscale: Run, photographs: Path, tmp_path: Path
) -> None:
    assert train_upscale(tmp_path / "run", "--iterations", 1).returncode == 0
    done = train_upscale(tmp_path / "run", "--iterations", 2, "--cross-scale", "psal1", "--width", 6)
    assert done.returncode == 2
    assert "holds a run with width 4, not 6, cross_scale exact, not psal1" in done.stderr
    (photographs / "0.png").rename(photographs / "9.png")
    assert "holds a run with photographs" in train_upscale(tmp_path / "run", "--iterations", 2).stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--cross-scale", "psal0"), "there is no cross-scale attention named 'psal0'"),
        (("--in-scale", "psal3"), "there is no in-scale attention named 'psal3'"),
        (("--scale", 5), "'5' is not one of '2', '3', '4'"),
        (("--width", 5), "width must be even, got 5"),
        (("--data", "nowhere"), "nowhere is not a folder: give a folder of pictures"),
    ],
)
def test_wrong_arguments_are_named(options: tuple[str, ...], message: str, train_upscale: Run, tmp_path: Path) -> None:
    done = train_upscale(tmp_path / "run", "--iterations", 1, *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "run").exists()


class Bicubic(nn.Module):
    """A network that interpolates."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([bicubic(picture, 2) for picture in x])


def test_the_loss_is_the_mean_absolute_error(photographs: Path) -> None:
    task = UpscaleTask(photographs, Architecture(2, 4, 1, "psal3", "local5"), SIZE, seed=0)
    small, large = task.example(0)
    assert small.shape == (1, 3, SIZE, SIZE)
    expected = (bicubic(small[0], 2) - large[0]).abs().mean()
    torch.testing.assert_close(task.loss(Bicubic(), [small, large]), expected)


def test_networks_are_evaluated_with_their_own_attention_and_with_others(
    train_upscale: Run, run_here: Run, photographs: Path, tmp_path: Path
) -> None:
    assert train_upscale(tmp_path / "run", "--iterations", 2).returncode == 0
    evaluate = partial(run_here, "eval", "upscale", tmp_path / "run", "--data", photographs, "--threads", 1)
    own, every = evaluate(), evaluate("--cross-scale", "psal10000")
    assert (own.returncode, own.stderr) == (0, "")
    network, by_bicubic = own.stdout.splitlines()
    assert re.fullmatch(r"network \S+ dB, SSIM \S+", network)
    pairs = [load_pair(path, 2) for path in sorted(photographs.iterdir())]
    expected = [quality(bicubic(small, 2), original, 2) for small, original in pairs]
    mean = [sum(values) / 3 for values in zip(*expected, strict=True)]
    assert by_bicubic == f"bicubic {mean[0]:.3f} dB, SSIM {mean[1]:.4f}"
    assert every.stdout == own.stdout  # all keys are exact attention
    assert evaluate("--cross-scale", "none").stdout != own.stdout
    cropped = evaluate("--crop", 16, "--each").stdout.splitlines()
    assert [line.split(":")[0] for line in cropped[:3]] == ["0", "1", "2"]
    assert cropped[4] != by_bicubic


def test_evaluation_of_what_cannot_be_read_is_refused(run_here: Run, photographs: Path, tmp_path: Path) -> None:
    done = run_here("eval", "upscale", tmp_path / "nowhere.pt", "--data", photographs)
    assert done.returncode == 2
    assert "nowhere.pt cannot be read as weights" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_pair_is_cut_to_whole_pixels_and_cropped_in_the_middle(tmp_path: Path) -> None:
    save(tmp_path / "photo.png", photo(32, 38))
    whole = torch.from_numpy(photo(32, 38)[:30, :36]).permute(2, 0, 1)
    small, original = load_pair(tmp_path / "photo.png", 3)
    assert original.equal(whole)
    assert small.mul(255).round().byte().equal(downscale(whole, 3))
    crop, part = load_pair(tmp_path / "photo.png", 3, crop=7)
    assert crop.equal(small[:, 1:8, 2:9])
    assert part.equal(original[:, 3:24, 6:27])
    assert load_pair(tmp_path / "photo.png", 3, crop=99)[0].equal(small)


def test_values_out_of_range_are_compared_as_black_and_white() -> None:
    original = torch.randint(0, 256, (3, 20, 22), dtype=torch.uint8)
    wild = 4 * torch.rand(3, 20, 22) - 1.5
    assert quality(wild, original, 2) == quality(wild.clamp(0, 1), original, 2)


def test_a_picture_without_a_whole_pixel_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "tiny.png", photo(2, 9))
    with pytest.raises(ValueError, match=r"tiny\.png has fewer than 3 × 3 pixels"):
        load_pair(tmp_path / "tiny.png", 3)
