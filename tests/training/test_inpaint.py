"""The inpainting task: its examples, its losses, and what the loop guarantees with two optimizers."""

import signal
import subprocess
import sys
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from PIL import Image
from support.commands import Run
from support.pictures import write_pictures
from support.tolerances import assert_close, assert_same_bits
from support.training_runs import assert_same_weights, losses, on_two_processes, weights
from torch import Tensor, nn

from psal.models.inpainting.weights import load_generator
from psal.training.inpaint import InpaintSettings, InpaintTask

SIZE = 32
TINY = ("--size", SIZE, "--hole", 16, "--width", 2, "--critic-width", 2, "--batch", 1, "--threads", 1)
ADVERSARIAL = ("--adversarial-from", 2, "--critic-steps", 2)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    return write_pictures(tmp_path / "pictures")


@pytest.fixture
def train(run_here: Run, pictures: Path) -> Run:
    """``psal train inpaint`` in this process, on one thread: ``train(out, *options)``."""
    return partial(run_here, "train", "inpaint", *TINY, "--data", pictures, "--out")


def task(pictures: Path, **settings: object) -> InpaintTask:
    tiny = {"size": SIZE, "hole": 16, "width": 2, "critic_width": 2}
    return InpaintTask(pictures, InpaintSettings(**(tiny | settings)), seed=0)  # type: ignore[arg-type]


@pytest.mark.parametrize("precision", ["32-true", "64-true", "bf16-mixed"])
def test_a_resumed_adversarial_run_ends_with_the_same_bits(precision: str, train: Run, tmp_path: Path) -> None:
    options = (*ADVERSARIAL, "--precision", precision, "--masks", "both")
    whole = train(tmp_path / "whole", "--iterations", 7, *options)
    assert (whole.returncode, whole.stderr) == (0, "")
    for iterations in (1, 4, 7):  # before the critics, between two steps of the network, and the end
        done = train(tmp_path / "parts", "--iterations", iterations, *options)
        assert done.returncode == 0, done.stderr
    assert_same_weights(tmp_path / "parts", tmp_path / "whole")
    states = [torch.load(tmp_path / run / "checkpoint.pt") for run in ("parts", "whole")]
    for name, x in states[1]["critic"]["model"].items():
        assert_same_bits(states[0]["critic"]["model"][name], x)


def test_each_network_is_trained_in_its_own_steps(train: Run, tmp_path: Path) -> None:
    def state(iterations: int) -> tuple[torch.Tensor, torch.Tensor]:
        assert train(tmp_path / "run", "--iterations", iterations, *ADVERSARIAL).returncode == 0
        found = torch.load(tmp_path / "run" / "checkpoint.pt")
        return found["model"]["coarse.encoder.0.0.weight"], found["critic"]["model"][
            "discriminators.whole.layers.0.weight"
        ]

    steps = [state(iterations) for iterations in range(1, 7)]
    network, critic = zip(*steps, strict=True)
    changed = [[not a.equal(b) for a, b in pairwise(x)] for x in (network, critic)]
    assert changed == [[True, False, True, False, True], [False, True, True, True, True]]


KILLED = """
import os, signal, sys
from pathlib import Path
import torch
from psal.training.inpaint import InpaintSettings, InpaintTask
from psal.training.loop import train
from psal.training.settings import Settings

class Killed(InpaintTask):
    def adversarial_loss(self, model, critic, example):
        os.kill(os.getpid(), signal.SIGKILL)

torch.set_num_threads(1)
settings = InpaintSettings(size=32, hole=16, width=2, critic_width=2, adversarial_from=2, critic_steps=2)
train(Killed(Path(sys.argv[1]), settings, 0), Settings(7, learning_rate=1e-4, checkpoint_every=1), Path(sys.argv[2]))
"""


def test_a_run_killed_between_the_critics_step_and_the_network_s_loses_that_step_alone(
    train: Run, pictures: Path, tmp_path: Path
) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, pictures, tmp_path / "run"], check=False, timeout=300)
    assert killed.returncode == -signal.SIGKILL
    settings = ("--iterations", 7, "--checkpoint-every", 1, *ADVERSARIAL)
    again = train(tmp_path / "run", *settings)
    assert again.stdout.startswith("7 steps, resumed at step 3")
    assert train(tmp_path / "whole", *settings).returncode == 0
    assert_same_weights(tmp_path / "run", tmp_path / "whole")


@pytest.mark.slow
def test_two_processes_take_the_steps_of_one_with_twice_the_batch(train: Run, pictures: Path, tmp_path: Path) -> None:
    options = (*ADVERSARIAL, "--iterations", 5, "--attention", "contextual")
    one = train(tmp_path / "one", *options, "--batch", 2)
    assert one.returncode == 0, one.stderr
    own = ("--data", pictures, "--out", tmp_path / "two")
    done = on_two_processes("-m", "psal.cli", "train", "inpaint", *TINY, *options, *own)
    assert done.returncode == 0, done.stderr
    found, wanted = weights(tmp_path / "two"), weights(tmp_path / "one")
    for name in wanted:
        assert_close(found[name], wanted[name])
    assert done.stdout.count("5 steps") == 1


@pytest.mark.parametrize("attention", ["psal3", "contextual", "none"])
def test_trained_weights_are_loaded_again(attention: str, train: Run, tmp_path: Path) -> None:
    done = train(tmp_path / "run", "--iterations", 2, "--attention", attention, "--adversarial-from", 9)
    assert (done.returncode, done.stderr) == (0, "")
    network, settings = load_generator(tmp_path / "run" / "model.safetensors", seed=0)
    assert (settings["attention"], settings["width"], settings["size"]) == (attention, "2", str(SIZE))
    hole = torch.zeros(1, 1, SIZE, SIZE, dtype=torch.bool)
    hole[..., 8:16, 8:16] = True
    assert network(torch.zeros(1, 3, SIZE, SIZE), hole)[1].isfinite().all()
    with Image.open(tmp_path / "run" / "look_000002.png") as picture:
        assert picture.size == (4 * SIZE, 3 * SIZE)


def test_l1_training_lowers_the_loss(train: Run, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    Image.new("RGB", (40, 50), (220, 60, 30)).save(tmp_path / "plain" / "red.png")
    options = ("--data", tmp_path / "plain", "--learning-rate", 0.003, "--adversarial-from", 999)
    done = train(tmp_path / "run", "--iterations", 150, *options, "--attention", "none")
    assert (done.returncode, done.stderr) == (0, "")
    loss = [float(value) for _, value in losses(tmp_path / "run")]
    assert loss[-1] < 0.5 * loss[0]


def test_a_broken_picture_is_named_skipped_and_counted(train: Run, pictures: Path, tmp_path: Path) -> None:
    broken = pictures / "a" / "001.png"
    broken.write_bytes(broken.read_bytes()[:60])
    done = train(tmp_path / "run", "--iterations", 9, "--adversarial-from", 99)
    assert done.returncode == 0
    assert f"warning: {broken} cannot be read" in done.stderr
    assert done.stderr.endswith("warning: skipped 1 picture\n")


def test_examples_depend_on_seed_and_number_alone(pictures: Path) -> None:
    first, again = task(pictures), task(pictures)
    for number in (5, 0):
        for a, b in zip(first.example(number), again.example(number), strict=True):
            assert_same_bits(a, b)
    assert not first.example(0)[0].equal(first.example(1)[0])


@pytest.mark.parametrize("masks", ["rectangles", "free-form", "both"])
def test_the_window_shows_a_part_of_the_hole(masks: str, pictures: Path) -> None:
    examples = task(pictures, masks=masks)
    for number in range(20):
        truth, depth, corner = examples.example(number)
        assert truth.abs().max() <= 1
        top, left = corner[0].tolist()
        window = depth[..., top : top + 16, left : left + 16]
        assert window.shape[2:] == (16, 16)
        assert window.max() > 0
        assert (depth > 0).float().mean() < 0.6


def test_the_critics_see_known_pixels_as_they_are(pictures: Path) -> None:
    examples = task(pictures)
    example = examples.example(3)
    truth, depth, _ = example
    whole, window = examples._seen(torch.full_like(truth, 9.0), example)
    assert whole[(depth == 0).expand_as(whole)].equal(truth[(depth == 0).expand_as(truth)])
    assert (whole[(depth > 0).expand_as(whole)] == 9).all()
    assert (window == 9).sum() == (whole == 9).sum()  # rectangles lie inside the window


class Off(nn.Module):
    """A network whose outputs are off by constants in every pixel."""

    def forward(self, truth: Tensor, hole: Tensor) -> tuple[Tensor, Tensor]:
        return truth + 0.25, truth - 0.5


def test_the_loss_adds_the_errors_of_known_pixels_to_those_in_the_hole(pictures: Path) -> None:
    examples = task(pictures, masks="both")
    truth, depth, corner = examples.example(3)
    inside = (0.9 ** depth[depth > 0]).sum() / 16**2  # of an error of 1 everywhere
    known = (depth == 0).float().mean()
    coarse, refined = 1.2 * 0.25, 0.5
    assert_close(examples.loss(Off(), [truth, depth, corner]), (coarse + refined) * 1.2 * (inside + known))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--attention", "full"), "there is no attention named 'full' for inpainting: choose from contextual, "),
        (("--data", "nowhere"), "nowhere is not a folder: give a folder of pictures"),
        (("--size", "34"), "the size must be a multiple of 4 and at least 32, got 34"),
        (("--hole", "17"), "the hole must be 16 to 16, half of the size, got 17"),
        (("--width", "3"), "the width must be even and positive, got 3"),
    ],
)
def test_wrong_arguments_are_named(options: tuple[str, ...], message: str, train: Run, tmp_path: Path) -> None:
    done = train(tmp_path / "run", "--iterations", 1, *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_run_is_not_resumed_with_other_masks_or_pictures(train: Run, tmp_path: Path) -> None:
    assert train(tmp_path / "run", "--iterations", 1).returncode == 0
    other = train(tmp_path / "run", "--iterations", 2, "--masks", "both", "--critic-steps", 3)
    assert other.returncode == 2
    assert "holds a run with masks rectangles, not both, critic_steps 5, not 3" in other.stderr
    more = write_pictures(tmp_path / "more", 5)
    assert "holds a run with pictures" in train(tmp_path / "run", "--iterations", 2, "--data", more).stderr


def test_an_empty_folder_is_named(train: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = train(tmp_path / "run", "--data", tmp_path / "empty")
    assert done.returncode == 2
    assert "empty has no pictures: expected files such as .bmp" in done.stderr
