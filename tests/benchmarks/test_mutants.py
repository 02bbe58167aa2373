"""Deliberate faults: which are drawn, and how the tests that should notice them are run."""

from pathlib import Path

import pytest

from benchmarks.forked_tests import ForkedTests
from benchmarks.kernel_build import ROOT
from benchmarks.mutants import TARGETS


@pytest.mark.parametrize("part", TARGETS)
def test_a_part_has_sources_and_tests(part: str) -> None:
    for pattern in TARGETS[part].sources:
        assert list(ROOT.glob(pattern)), pattern
    files = TARGETS[part].test_files()
    assert len(files) > 5
    assert all((ROOT / file).is_file() for file in files)


@pytest.mark.parametrize("part", TARGETS)
def test_a_larger_sample_contains_every_smaller_one_and_no_line_twice(part: str) -> None:
    if part != "kernels":
        pytest.importorskip("cosmic_ray")
    small, large = (TARGETS[part].draw(count) for count in (5, 12))
    assert [mutation.name for mutation in large[:5]] == [mutation.name for mutation in small]
    assert len({(mutation.path, mutation.line) for mutation in large}) == 12
    for mutation in large:
        original = (ROOT / mutation.path).read_text()
        assert mutation.source != original
        assert mutation.before != mutation.after
        assert mutation.before in original


TESTS = """
import os, signal, subprocess

def test_passes():
    from fruit import COLOR
    assert COLOR == "red"

def test_leaves_a_process_behind():
    subprocess.Popen(["sleep", "1000"])

def test_kills_itself():
    if COLOR_FILE.exists():
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_every_run_sees_the_sources_as_they_are(tmp_path: Path) -> None:
    deadly = tmp_path / "deadly"
    (tmp_path / "src").mkdir()
    source = tmp_path / "src" / "fruit.py"
    source.write_text('COLOR = "red"\n')
    (tmp_path / "test_fruit.py").write_text(f"from pathlib import Path\nCOLOR_FILE = Path({str(deadly)!r})\n{TESTS}")
    with ForkedTests(tmp_path) as tests:
        run = tests.run(["test_fruit.py"])
        assert (run.exit_code, run.first_failure, list(run.seconds)) == (0, None, ["test_fruit.py"])
        source.write_text('COLOR = "green"\n')
        run = tests.run(["test_fruit.py"])
        assert (run.exit_code, run.first_failure) == (1, "test_fruit.py::test_passes")
        source.write_text('COLOR = "red"\n')
        deadly.touch()
        assert tests.run(["test_fruit.py"]).exit_code == -9
