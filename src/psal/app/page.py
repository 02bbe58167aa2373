"""The page: its tabs, its look, and the text on top."""

from pathlib import Path
from typing import Any

import gradio as gr

from psal.app.controller import Controller
from psal.app.limits import MAX_FILE_BYTES, MAX_PIXELS, MAX_QUEUE, MEGA, megapixels
from psal.app.parts import asset
from psal.app.sessions import Sessions
from psal.app.tab_edit import DESCRIPTIONS, build_edit_tab
from psal.app.tab_inpaint import build_inpaint_tab
from psal.app.tab_inside import build_inside_tab
from psal.app.workers import Workers
from psal.editing.registry import EDITS

TITLE = "psal"
SYSTEM_FONTS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Liberation Sans", "sans-serif")
SYSTEM_FONTS_MONO = ("ui-monospace", "Menlo", "Consolas", "Liberation Mono", "monospace")


def build_page(sessions: Sessions, workers: Workers, folder: Path) -> gr.Blocks:
    """The whole page.

    Args:
        sessions: open sessions.
        workers: worker processes.
        folder: for the sample pictures.
    """
    controller = Controller(sessions, workers, folder / "samples")
    blocks = gr.Blocks(title=TITLE, analytics_enabled=False)
    with blocks:
        gr.Markdown(
            "# psal\nEdit photographs with patches of the photograph itself or of another one. Everything is computed "
            "on the computer that serves this page, and your files are deleted when you close it.\n\n"
            f"PNG, JPEG, TIFF, WebP, BMP and GIF, up to {MAX_FILE_BYTES / MEGA:.0f} MB "
            f"and {megapixels(MAX_PIXELS)} each."
        )
        with gr.Tabs(elem_id="tabs"):
            for edit in EDITS.values():
                if edit.partner != "mask" and edit.name not in DESCRIPTIONS:
                    continue  # on the command line and in Python only
                with gr.Tab(edit.name.capitalize(), id=edit.name, render_children=True):
                    if edit.partner == "mask":
                        build_inpaint_tab(controller)
                    else:
                        build_edit_tab(controller, edit)
            with gr.Tab("Look inside", id="inside", render_children=True):
                build_inside_tab(controller)
    blocks.queue(max_size=MAX_QUEUE, default_concurrency_limit=4)
    return blocks


def page_style() -> dict[str, Any]:
    """Theme and styles, with fonts that computers have: none is fetched."""
    theme = gr.themes.Base(primary_hue="indigo", font=SYSTEM_FONTS, font_mono=SYSTEM_FONTS_MONO)
    return {"theme": theme, "css": asset("style.css")}
