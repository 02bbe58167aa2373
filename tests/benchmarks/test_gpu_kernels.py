"""The Triton kernels compiled for a card: they must fit into its registers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="Triton is not installed: pip install triton")

PROGRAM = """
import json, sys
from benchmarks.gpu_kernels import Configuration, compile_for, default_configurations
from benchmarks.gpu_kernels import resources_of, unusual_configurations

if sys.argv[2] == "few":
    chosen = [Configuration("flood", 16, 3), Configuration("flood", 64, 7)]
else:
    chosen = list(default_configurations() if sys.argv[2] == "default" else unusual_configurations())
target = sys.argv[1]
print(json.dumps({each.name: resources_of(compile_for(each, target), target) for each in chosen}))
"""


def compiled(target: str, which: str, cache: Path) -> dict[str, dict[str, float]]:
    """Resources of kernels, compiled in a fresh process: this one may have them for the interpreter."""
    environment = {name: text for name, text in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"TRITON_CACHE_DIR": str(cache), "PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}
    command = [sys.executable, "-c", PROGRAM, target, which]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, dict[str, float]] = json.loads(run.stdout)
    return found


def assert_fits(found: dict[str, dict[str, float]]) -> None:
    assert {name: kernel["registers"] for name, kernel in found.items() if kernel["registers"] > 96} == {}
    assert {name: kernel["inner_spills"] for name, kernel in found.items() if kernel["inner_spills"]} == {}


def test_the_main_kernel_fits_into_registers_by_default_and_at_its_largest(tmp_path: Path) -> None:
    assert_fits(compiled("sm_90", "few", tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90", "sm_100"])
def test_all_default_configurations_fit_into_registers(target: str, tmp_path: Path) -> None:
    assert_fits(compiled(target, "default", tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx90a", "gfx942"])
def test_default_configurations_compile_for_rocm_without_spills(target: str, tmp_path: Path) -> None:
    assert {
        name: kernel["spills"] for name, kernel in compiled(target, "default", tmp_path).items() if kernel["spills"]
    } == {}


@pytest.mark.slow
def test_unusual_configurations_compile(tmp_path: Path) -> None:
    assert len(compiled("sm_80", "unusual", tmp_path)) == 17
