"""What the command line loads before there is work to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import photo, save

HEAVY = {"torch", "scipy", "skimage", "PIL", "gradio", "lightning_fabric"}


def loaded_by(*arguments: object) -> tuple[int, set[str]]:
    """Exit code of the command, and the modules that it has loaded when it ends."""
    code = (
        "import atexit, sys; atexit.register(lambda: print('\\n'.join(sys.modules), file=sys.stderr)); "
        "from psal.cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    return done.returncode, set(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["inpaint", "--help"], 0),
        (["train", "colorize", "--help"], 0),
        (["nonsense"], 2),
        (["upscale", "nowhere.png", "-o", "out.png"], 2),
        (["upscale", "nowhere.png", "-o", "out.png", "--scale", "9"], 2),
        (["apply-shifts", "nowhere.npz", "nowhere.png", "-o", "out.png"], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_help_and_wrong_usage_load_nothing_heavy(arguments: list[str], code: int) -> None:
    returned, loaded = loaded_by(*arguments)
    assert returned == code
    assert "typer" in loaded
    assert not loaded & HEAVY


def test_an_existing_output_is_found_before_anything_heavy_is_loaded(tmp_path: Path) -> None:
    path, out = save(tmp_path / "photo.png", photo()), save(tmp_path / "out.png", photo())
    returned, loaded = loaded_by("upscale", path, "-o", out)
    assert returned == 2
    assert not loaded & HEAVY


def test_waiting_threads_do_not_spin_unless_asked_to() -> None:
    code = (
        "import os, sys; sys.argv = ['psal', '--version']; from psal.cli.main import main\n"
        "try: main()\nfinally: print(os.environ['OMP_WAIT_POLICY'])"
    )
    given = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    for environment, policy in ((given, "PASSIVE"), (given | {"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
        )
        assert done.stdout.split()[-1] == policy
