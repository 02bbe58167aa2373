"""Tables of the documentation are rendered from the committed results."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("mkdocs")
from mkdocs.exceptions import PluginError

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
COLORIZATION = [f"colorization_{name}" for name in ("neighbors", "similarity", "cost", "swap")]
INPAINTING = [f"inpainting_{name}" for name in ("rectangles", "freeform", "scenes", "guide", "layers", "large")]
TABLES = [
    *(
        "layer",
        "layer_times",
        "editing",
        "fill_constants",
        "app",
        "memory",
        "reconstruction",
        "gmflow",
        "gpu_offline",
        "seeding",
        "mutants",
    ),
    *COLORIZATION,
    *INPAINTING,
    "super_resolution",
    "super_resolution_large",
    "super_resolution_set14",
]


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    """docs/hooks/tables.py, loaded as mkdocs loads it."""
    spec = importlib.util.spec_from_file_location("tables_hook", ROOT / "docs" / "hooks" / "tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def results(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return content


def rows(markdown: str) -> list[list[str]]:
    """Cells of all table rows."""
    return [line[2:-2].split(" | ") for line in markdown.splitlines() if line.startswith("|")]


@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_rows_and_one_origin_per_machine(hook: ModuleType, name: str) -> None:
    page = hook.replace_markers(f"before\n\n<!-- table: {name} -->\n\nafter", RESULTS, "performance.md")
    assert page.startswith("before\n\n")
    assert page.endswith("\n\nafter")
    assert len(rows(page)) > 3
    record = results(name.removesuffix("_times"))
    origins = [record["metadata"], *(cell["metadata"] for cell in record["cells"].values() if "metadata" in cell)]
    for origin in origins:
        assert f"easured on {origin['date'][:10]} by `{origin['command']}` on {origin['cpu']}" in page
    assert "<!--" not in page


@pytest.mark.parametrize("name", TABLES)
def test_rows_are_as_wide_as_their_head(hook: ModuleType, name: str) -> None:
    blocks = hook.table(name, RESULTS, "x.md").split("\n\n")
    for block in (block for block in blocks if block.startswith("|")):
        assert len({len(row) for row in rows(block)}) == 1


def test_results_hold_measurements_and_no_judgment_or_private_path() -> None:
    for path in RESULTS.glob("*.json"):
        text = path.read_text()
        assert not any(f'"{word}"' in text for word in ("least", "aim", "ok", "notes")), path
        assert "../" not in text, path
        assert "--readme" not in text, path


def test_cells_of_the_layer_are_those_of_the_json(hook: ModuleType) -> None:
    first = results("layer")["cells"]["exact"]["rows"][0]
    shown = rows(hook.table("layer", RESULTS, "x.md"))[2]
    assert shown[0] == first["quantity"] == "default search: speedup"
    assert shown[2] == f"{first['value']:,.0f} ×"


def test_rows_of_another_machine_are_named(hook: ModuleType, tmp_path: Path) -> None:
    record = results("editing")
    cells = list(record["cells"].values())
    for cell in cells:
        cell.pop("metadata", None)
    cells[-1]["metadata"] = record["metadata"] | {"cpu": "Another CPU"}
    (tmp_path / "editing.json").write_text(json.dumps(record))
    *_, main, other = hook.table("editing", tmp_path, "x.md").split("\n\n")
    assert f" on {record['metadata']['cpu']} (" in main
    assert other.startswith(f"{cells[-1]['label']}: measured on ")
    assert " on Another CPU (" in other


def test_cells_of_the_memory_table_are_those_of_the_json(hook: ModuleType) -> None:
    cells = results("memory")["cells"]
    shown = {row[0]: row for row in reversed(rows(hook.table("memory", RESULTS, "x.md")))}  # the first table wins
    peak = [cells[f"psal3 512 {mode}"]["peak"] / 1e9 for mode in ("forward", "backward")]
    assert shown["PSAL 3"][4] == "{:.3f} ({:.3f})".format(*peak)
    assert shown["Full attention, materialized"][4].startswith("≈ ")  # extrapolated


def test_cells_of_a_colorization_table_are_those_of_the_json(hook: ModuleType) -> None:
    shown = rows(hook.table("colorization_similarity", RESULTS, "x.md"))
    dot = results("colorization_similarity")["cells"]["full-dot full-dot 0"]
    gray = results("colorization_similarity")["cells"]["gray"]
    assert shown[3][3] == str(int(dot["val"]["loss"] < gray["val"]["loss"]))
    assert shown[3][4:6] == [f"{dot[split]['loss']:.5f}" for split in ("val", "holdout")]
    assert shown[3][9] == "0.0064"


def test_a_colorization_table_counts_the_seeds_below_the_gray_frame(hook: ModuleType) -> None:
    cells = results("colorization_neighbors")["cells"]
    below = [
        cell["val"]["loss"] < cells["gray"]["val"]["loss"]
        for name, cell in cells.items()
        if name.startswith("psal3 psal3")
    ]
    shown = rows(hook.table("colorization_neighbors", RESULTS, "x.md"))
    [row] = [row for row in shown if row[0] == "PSAL 3"]
    assert row[2:4] == [str(len(below)), str(sum(below))]


def test_an_indented_marker_stays_indented(hook: ModuleType) -> None:
    page = hook.replace_markers("??? note\n\n    <!-- table: layer_times -->", RESULTS, "x.md")
    assert all(line.startswith("    ") for line in page.splitlines()[2:] if line)


def test_figures_are_linked_relative_to_the_page(hook: ModuleType) -> None:
    marker = "<!-- figure: memory | memory by size -->"
    assert hook.replace_markers(marker, RESULTS, "paper.md") == "![memory by size](results/memory.png)"
    assert hook.replace_markers(marker, RESULTS, "guide/paper.md") == "![memory by size](../results/memory.png)"


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("<!-- table: lair -->", "x.md: unknown table 'lair'; known are app, "),
        ("<!-- figure: lair | text -->", "x.md: unknown figure 'lair'"),
        ("<!-- figure: memory -->", "needs alternative text"),
        ("<!-- table: app_times -->", "has no rows"),
    ],
)
def test_unknown_names_abort_the_build(hook: ModuleType, marker: str, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        hook.replace_markers(marker, RESULTS, "x.md")


def test_modeled_tables_say_that_nothing_was_measured(hook: ModuleType) -> None:
    markdown = hook.replace_markers("<!-- table: gpu_bounds -->", RESULTS, "gpu.md")
    assert [row[0] for row in rows(markdown)[2:4]] == ["search, seeded", "search, paper's schedule"]
    assert markdown.endswith("Modeled, in milliseconds; not measured.")
