"""The colorization task: its data, and the evaluation of trained networks."""

from functools import partial
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from support.commands import Run
from support.frames import write_davis
from support.training_runs import SIZE, frame


def test_a_broken_frame_is_named_skipped_and_counted(train: Run, davis: Path, tmp_path: Path) -> None:
    broken, previewed = frame(davis, "bear", 1), frame(davis, "swan", 6)
    broken.write_bytes(broken.read_bytes()[:200])
    previewed.write_bytes(b"x")  # the middle one, so there is no preview
    done = train(tmp_path / "run", "--iterations", 30)
    assert done.returncode == 0
    assert f"warning: {broken} cannot be read" in done.stderr
    assert f"warning: {previewed} cannot be read" in done.stderr
    assert done.stderr.endswith("warning: skipped 2 frames\n")
    assert not list((tmp_path / "run").glob("look*"))
    later = train(tmp_path / "run", "--iterations", 31)
    assert later.stderr == done.stderr  # the warnings of earlier steps are kept


def test_a_frame_that_claims_to_be_huge_is_skipped(train: Run, davis: Path, tmp_path: Path) -> None:
    huge = frame(davis, "bear", 1)
    content = bytearray(huge.read_bytes())
    sizes = content.index(b"\xff\xc0") + 5
    content[sizes : sizes + 4] = b"\xff\x00\xff\x00"
    huge.write_bytes(content)
    done = train(tmp_path / "run", "--iterations", 30)
    assert done.returncode == 0
    assert f"warning: {huge} cannot be read" in done.stderr


def test_short_sequences_are_previewed_too(train: Run, tmp_path: Path) -> None:
    short = write_davis(tmp_path / "short", {"bear": ("train", 2), "swan": ("val", 3)})
    assert train(tmp_path / "run", "--iterations", 1, "--data", short).returncode == 0
    with Image.open(tmp_path / "run" / "look_000001.png") as picture:
        assert picture.size == (4 * SIZE, 2 * SIZE)


def test_the_last_two_train_sequences_are_held_out(train: Run, run_here: Run, davis: Path, tmp_path: Path) -> None:
    for name in ("eel", "fox"):
        for path in frame(davis, name, 0).parent.iterdir():
            path.write_bytes(b"x")  # reading one would be a warning
    done = train(tmp_path / "run", "--iterations", 30)
    assert (done.returncode, done.stderr) == (0, "")
    evaluate = partial(run_here, "eval", "colorize", tmp_path / "run", "--data", davis)
    assert evaluate().returncode == 0
    held_out = evaluate("--split", "holdout")
    assert held_out.returncode == 2
    assert f"{frame(davis, 'eel', 1).parent}/" in held_out.stderr
    assert "cannot be read" in held_out.stderr


def test_a_data_set_of_one_sequence_has_none_to_hold_out(train: Run, run_here: Run, tmp_path: Path) -> None:
    single = write_davis(tmp_path / "single", {"bear": ("train", 3), "swan": ("val", 3)})
    assert train(tmp_path / "run", "--iterations", 1, "--data", single).returncode == 0
    done = run_here("eval", "colorize", tmp_path / "run", "--data", single, "--split", "holdout")
    assert done.returncode == 2
    assert "has no sequence with two or more frames in its holdout split" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--attention", "psal0"), "there is no attention named 'psal0'"),
        (("--data", "nowhere"), "nowhere/ImageSets/2016/train.txt does not exist"),
        (("--precision", "8-bit"), "precision"),
        (("--device", "gpu"), "'gpu' is not one of 'auto'"),
        (("--learning-rate", "inf"), "the learning rate must be positive and finite, got inf"),
        (("--learning-rate", "0"), "the learning rate must be positive and finite, got 0.0"),
    ],
)
def test_wrong_arguments_are_named(options: tuple[str, ...], message: str, train: Run, tmp_path: Path) -> None:
    done = train(tmp_path / "run", "--iterations", 1, *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_trained_network_is_evaluated_with_its_own_layer_and_with_another(
    train: Run, run_here: Run, davis: Path, tmp_path: Path
) -> None:
    assert train(tmp_path / "run", "--iterations", 2, "--attention", "full").returncode == 0
    evaluate = partial(run_here, "eval", "colorize", tmp_path / "run", "--data", davis)
    own, every = evaluate(), evaluate("--attention", f"psal{SIZE**2}")
    assert (own.returncode, own.stderr) == (0, "")
    assert [line.split()[0] for line in own.stdout.splitlines()] == ["±1", "±3", "±5", "mean"]  # of 13 frames
    assert every.stdout == own.stdout  # all keys are full attention
    assert evaluate("--attention", "linear").stdout != own.stdout
    for settings in ({"task": "colorize"}, {"task": "colorize", "attention": "psal3"}):
        save_file({"x": torch.zeros(1)}, tmp_path / "run" / "model.safetensors", settings)
        foreign = evaluate()
        assert foreign.returncode == 2
        assert "model.safetensors does not hold the weights of a colorizer" in foreign.stderr
        assert foreign.stderr.count("\n") == 1
    (tmp_path / "run" / "model.safetensors").write_bytes(b"broken")
    broken = evaluate()
    assert broken.returncode == 2
    assert "model.safetensors cannot be read as weights" in broken.stderr
    assert broken.stderr.count("\n") == 1
