"""Every header of csrc parses on its own, so that editors see it and the order of inclusion does not matter."""

import os
import subprocess
from pathlib import Path

import pytest
from torch.utils.cpp_extension import include_paths

CSRC = Path(__file__).parents[2] / "csrc"
HEADERS = sorted(str(path.relative_to(CSRC)) for path in CSRC.rglob("*.h"))
PER_TARGET = [header for header in HEADERS if header.endswith("-inl.h")]
TARGETS = ("baseline", "v3", "v4") if os.uname().machine == "x86_64" else ("baseline",)
COMPILER = os.environ.get("CXX", "g++").split()
FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Werror", "-Wno-psabi"]
TORCH = [f"-isystem{path}" for path in include_paths()] + ["-DTORCH_TARGET_VERSION=0x020a000000000000"]


def check(*arguments: str, source: str | None = None) -> None:
    done = subprocess.run([*COMPILER, *FLAGS, *arguments], input=source, text=True, capture_output=True, cwd=CSRC)
    assert not done.returncode, done.stderr


@pytest.mark.parametrize("header", HEADERS)
def test_header_parses_alone(header: str) -> None:
    check("-xc++", header, *(TORCH if header.startswith("ops/") else ()))


def test_headers_can_be_included_twice_for_every_target() -> None:
    lines = []
    for number, target in enumerate(TARGETS):
        toggle = "#undef PSAL_TARGET_TOGGLE" if number % 2 == 0 else "#define PSAL_TARGET_TOGGLE"
        lines += ["#undef PSAL_TARGET", f"#define PSAL_TARGET {target}", toggle]
        lines += [f'#include "{header}"' for header in PER_TARGET * 2]
    check("-xc++", f"-I{CSRC}", "-", source="\n".join(lines) + "\n")


@pytest.mark.parametrize("order", [1, -1])
def test_headers_can_be_included_in_any_order(order: int) -> None:
    source = "".join(f'#include "{header}"\n' for header in HEADERS[::order])
    check("-xc++", f"-I{CSRC}", *TORCH, "-", source=source)


@pytest.mark.parametrize("header", [header for header in PER_TARGET if header != "kernels/table-inl.h"])  # only a table
def test_standard_headers_are_included_outside_of_the_target(header: str) -> None:
    """Their inline functions exist once in the binary, so they must not be compiled for one instruction set."""
    text = (CSRC / header).read_text()
    _, begin, inside = text.partition("\nPSAL_BEGIN_TARGET\n")
    inside, end, _ = inside.partition("\nPSAL_END_TARGET\n")
    assert begin
    assert end
    assert "#include" not in inside
