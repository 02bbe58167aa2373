from pathlib import Path

from support.commands import Run, files_in


def test_samples_are_written_with_commands_that_fit(tmp_path: Path, run_here: Run) -> None:
    folder = tmp_path / "my samples"
    done = run_here("samples", folder)
    assert (done.returncode, done.stderr) == (0, "")
    commands = [line.split()[:2] for line in done.stdout.splitlines() if line.startswith("  psal ")]
    assert commands == [["psal", name] for name in ("inpaint", "outpaint", "colorize", "reconstruct", "upscale")]
    assert all(f"'{folder / name}'" in done.stdout for name in files_in(folder))
    assert len(files_in(folder)) == 8
    again = run_here("samples", folder)
    assert again.returncode == 2
    assert "exists: add --overwrite" in again.stderr
    assert again.stderr.count("\n") == 1
