"""What importing psal loads, and which way its modules import each other."""

import ast
import os
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import psal

SOURCE = Path(psal.__file__).parent
MODULES = {
    ".".join(["psal", *path.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__"): path
    for path in SOURCE.rglob("*.py")
}


def loaded_by(statement: str) -> set[str]:
    """Names of all modules that a fresh Python has loaded after a statement."""
    code = f"import sys; {statement}; print('\\n'.join(sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def imports_of(path: Path) -> set[str]:
    """Modules of psal that a file imports when it is loaded."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            submodules = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (submodules & MODULES.keys()) or {node.module}
    return found & MODULES.keys()


def test_importing_psal_loads_no_torch() -> None:
    assert not loaded_by("import psal") & {"torch", "numpy", "PIL", "scipy", "typer", "psal.functional"}


def test_the_layer_loads_nothing_above_it() -> None:
    loaded = loaded_by("import psal; psal.patch_match; psal.functional.patch_match; psal.PatchAttention")
    rooms = {name.split(".")[1] for name in loaded if name.startswith("psal.")}
    assert rooms <= {
        "checks",
        "functional",
        "layers",
        "matches",
        "ops",
        "options",
        "precision",
        "seeds",
        "swap",
        "tokens",
        "version",
    }
    assert not loaded & {"PIL", "scipy", "skimage", "typer", "lightning_fabric"}


@pytest.mark.parametrize("own", [None, "ACTIVE"])
def test_threads_sleep_while_edits_wait_unless_told_otherwise(own: str | None) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    environment |= {} if own is None else {"OMP_WAIT_POLICY": own}
    code = "import os, psal; psal.inpaint; print(os.environ['OMP_WAIT_POLICY'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == [own or "PASSIVE"]


def test_an_adapter_without_its_library_says_what_to_install() -> None:
    libraries = ("diffusers", "transformers")
    tries = [
        f"sys.modules['{x}'] = None\ntry: import psal.adapters.{x}\nexcept ImportError as e: print(e)"
        for x in libraries
    ]
    command = [sys.executable, "-c", "\n".join(["import sys", *tries])]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    for line, library in zip(said, libraries, strict=True):
        assert line.startswith(f"psal.adapters.{library} needs {library}: pip install -U {library} (")


def test_editing_functions_are_listed_before_they_are_loaded() -> None:
    assert set(psal.__all__) <= set(dir(psal))


# From the bottom up: a module imports from its own room, from its own level and from the levels below.
LEVELS = (
    {
        "version",
        "errors",
        "messages",
        "progress",
        "precision",
        "devices",
        "seeds",
        "matches",
        "checks",
        "options",
        "luminance",
        "sums",
        "waiting",
    },
    {"io", "data", "measure"},
    {"ops"},
    {"functional"},
    {"layers", "tokens"},
    {"baselines", "swap", "adapters", "models"},
    {"editing", "training", "experiments"},
    {"app", "cli"},
)
LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
PUBLIC_LEVEL = LEVEL["editing"]  # of psal itself, through which all public names can be reached


def all_imports_of(path: Path) -> set[str]:
    """Modules that a file names in any import: also inside functions, and for type checkers alone."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            submodules = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (submodules & MODULES.keys()) or {node.module}
    return {name for name in found if name.split(".")[0] == "psal"}


def level_of(module: str) -> int:
    return LEVEL[module.split(".")[1]] if "." in module else PUBLIC_LEVEL


def test_modules_import_nothing_that_stands_above_them() -> None:
    upward = [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        for name in all_imports_of(path)
        if module != "psal" and level_of(name) > level_of(module)
    ]
    assert not upward


def test_no_module_imports_itself_through_others() -> None:
    graph = {name: imports_of(path) for name, path in MODULES.items()}
    graph["psal"] |= set(psal._LAZY.values())
    TopologicalSorter(graph).prepare()  # raises CycleError
