"""The documentation builds without warnings, and its docstrings are readable Markdown."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.pages import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return out


def test_pages_show_tables_and_reference(site: Path) -> None:
    performance, reference = ((site / name).read_text() for name in ("performance.html", "api/layer.html"))
    assert "<table>" in performance
    assert "<!-- table" not in performance
    assert 'id="psal.patch_match"' in reference


def test_the_reference_has_every_public_name(site: Path) -> None:
    reference = "".join(page.read_text() for page in (site / "api").glob("*.html"))
    names = (ROOT / "tests" / "public_api.txt").read_text().split()
    assert [name for name in names if name != "__version__" and f'id="psal.{name}"' not in reference] == []


def test_no_page_loads_anything_from_other_servers(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = [word for word in page.read_text().split() if word.startswith(('src="http', 'href="https://fonts'))]
        assert loaded == [], page


@pytest.mark.parametrize("page", ["layer", "editing", "models", "adapters"])
def test_docstrings_leave_no_markup_behind(site: Path, page: str) -> None:
    text = (site / "api" / f"{page}.html").read_text()
    for leftover in (":func:", ":class:", ":mod:", "<p>&gt;&gt;&gt;"):
        assert leftover not in text
