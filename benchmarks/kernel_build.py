"""Build the kernels of a changed copy of csrc, for this machine's instruction set alone."""

import shutil
import subprocess
import sys
from pathlib import Path

from psal.ops.native import simd_paths

ROOT = Path(__file__).parents[1]

# The table of kernels of an instruction set that is not built.
STUB = """#include "../kernels/table.h"
namespace psal::{name} {{
extern const Kernels kernels;
const Kernels kernels = {{}};
}}
"""


class BuildError(RuntimeError):
    """The compiler refused the sources; the message is its output."""


def copy_sources(folder: Path) -> None:
    """Copy csrc and setup.py to a folder, with the other instruction sets left out."""
    shutil.copytree(ROOT / "csrc", folder / "csrc")
    shutil.copy(ROOT / "setup.py", folder)
    built = simd_paths()[-1].removeprefix("x86-64-")
    for target in (folder / "csrc" / "simd").glob("target_*.cpp"):
        name = target.stem.removeprefix("target_")
        if name != built:
            target.write_text(STUB.format(name=name))


def build(folder: Path) -> Path:
    """Build what :func:`copy_sources` copied; return the library.

    Raises:
        BuildError: if it does not compile.
    """
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--build-lib", "lib"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"{done.stdout}{done.stderr}")
    return next((folder / "lib").rglob("_C*.so"))
