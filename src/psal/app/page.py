"""The page: its tabs, its look, and what it says on top."""

from pathlib import Path
from typing import Any

import gradio as gr

from psal.app.desk import Desk
from psal.app.limits import MEGA, MOST_BYTES, MOST_PIXELS, MOST_WAITING, megapixels
from psal.app.parts import EDITS, asset
from psal.app.tab_fill import build_fill_tab
from psal.app.tab_inside import build_inside_tab
from psal.app.tab_pairs import build_colour_tab, build_enlarge_tab, build_rebuild_tab
from psal.app.visitors import Visitors
from psal.app.workers import Workers

__all__ = ["EDITS", "build_page", "page_style"]

TITLE = "psal"
TABS = {
    "Fill": build_fill_tab,
    "Colour": build_colour_tab,
    "Rebuild": build_rebuild_tab,
    "Enlarge": build_enlarge_tab,
    "Look inside": build_inside_tab,
}
SYSTEM_FONTS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Liberation Sans", "sans-serif")
SYSTEM_FONTS_MONO = ("ui-monospace", "Menlo", "Consolas", "Liberation Mono", "monospace")


def build_page(visitors: Visitors, workers: Workers, folder: Path) -> gr.Blocks:
    """The whole page.

    Args:
        visitors: who is there.
        workers: who does the work.
        folder: for the sample pictures.
    """
    desk = Desk(visitors, workers, folder / "samples")
    blocks = gr.Blocks(title=TITLE, analytics_enabled=False)
    with blocks:
        gr.Markdown(
            "# psal\nEdit photographs with patches of the photograph itself or of another one. Everything is computed "
            "on the computer that serves this page, and your files go when you close it.\n\n"
            f"PNG, JPEG, TIFF, WebP, BMP and GIF, up to {MOST_BYTES / MEGA:.0f} MB and {megapixels(MOST_PIXELS)} each."
        )
        with gr.Tabs(elem_id="tabs"):
            for name, build in TABS.items():
                with gr.Tab(name, id=name, render_children=True):
                    build(desk)
    blocks.queue(max_size=MOST_WAITING, default_concurrency_limit=4)
    return blocks


def page_style() -> dict[str, Any]:
    """Theme and styles, with fonts that computers have: none is fetched."""
    theme = gr.themes.Base(primary_hue="indigo", font=SYSTEM_FONTS, font_mono=SYSTEM_FONTS_MONO)
    return {"theme": theme, "css": asset("style.css")}
