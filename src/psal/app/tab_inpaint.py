"""The tab *Inpaint*: paint over what to remove, and fill it."""

from typing import Any

import gradio as gr

from psal.app.controller import (
    Controller,
    Value,
    attempt,
    duration,
    given_name,
    given_path,
    given_seed,
    keep_painted,
    said,
    shown,
)
from psal.app.limits import PREVIEW_SIDE
from psal.app.parts import (
    HIDDEN,
    INSTANT,
    OPENING,
    asset,
    controls,
    download,
    offered,
    picker,
    when_clicked,
    when_dropped,
    when_sample,
)

PAINTED = "(photo, mask, painted, seed, done) => [photo, mask, window.psalPainted(), seed, done]"
AGAIN = "(photo, mask, painted, seed, done) => [photo, mask, window.psalPainted(), (seed ?? 0) + 1, done]"


def build_inpaint_tab(controller: Controller) -> None:
    """Drop a photograph, paint the hole, fill it."""
    gr.Markdown(
        "Paint over what to remove; it is filled with what the rest of the photograph suggests. Photographs larger "
        f"than {PREVIEW_SIDE} pixels are painted on a smaller preview and filled at full size."
    )
    with gr.Row():
        with gr.Column(scale=3):
            photo = picker("Photograph", "inpaint-photo")
        with gr.Column(scale=2):
            mask = picker("Mask, white in the hole (optional)", "inpaint-mask")
    sample = gr.Button("Try a sample", size="sm", elem_id="inpaint-sample")
    painter = gr.HTML(
        None, html_template=asset("painter.html"), js_on_load=asset("painter.js"), apply_default_css=False,
        elem_id="inpaint-painter",
    )  # fmt: skip
    painted = gr.Textbox(visible=False)  # carries the painted mask when a button is clicked
    parts = controls("inpaint", "Inpaint")
    seed = parts.seed
    slider = gr.ImageSlider(
        label="Before and after", interactive=False, elem_id="inpaint-slider", buttons=["fullscreen"], visible=False
    )
    with gr.Row():
        again = gr.Button("Inpaint again with another seed", elem_id="inpaint-again", size="sm", interactive=False)
        go_on = gr.Button("Continue painting on the result", elem_id="inpaint-go-on", size="sm", interactive=False)
        result = download("Download the picture", "inpaint-result")
        hole = download("Download the mask", "inpaint-hole")
    done = gr.State(None)  # the last result

    def open_photo(request: gr.Request, value: Any) -> list[Any]:
        opened = controller.open(value, request)
        return [opened, None, _to_paint_on(opened, None)]

    def open_mask(request: gr.Request, value: Any, photo_value: Any) -> list[Any]:
        opened = controller.open_mask(value, photo_value, request)
        return [opened, _to_paint_on(photo_value, opened)]

    def put_sample(request: gr.Request) -> list[Any]:
        photo_value = controller.open(controller.sample("inpaint", "photo", request), request)
        mask_value = controller.open_mask(controller.sample("inpaint", "mask", request), photo_value, request)
        return [photo_value, mask_value, _to_paint_on(photo_value, mask_value)]

    def inpaint(
        request: gr.Request, progress: gr.Progress, photo_value: Any, mask_value: Any, strokes: Any, number: Any,
        before: Any,
    ) -> list[Any]:  # fmt: skip
        session = controller.session(request)
        arguments = {
            "photo": given_path(photo_value, session, "a photograph"),
            "name": given_name(photo_value),
            "mask": given_path(mask_value, session, "a mask") if mask_value else None,
            "seed": given_seed(number),
        }
        strokes_file = keep_painted(strokes, session)
        try:
            filled = controller.work("inpaint", arguments | {"painted": strokes_file}, "inpaint", progress, request)
        finally:
            session.forget(strokes_file)
        if before and before["result"] != arguments["photo"] and before["working"] != arguments["photo"]:
            session.forget(before["result"])
        size = f"{filled['width']} × {filled['height']} pixels"
        line = said(f"done in {duration(filled['seconds'])}: {size}, seed {arguments['seed']}")
        shows = gr.update(value=(filled["before"], filled["after"]), visible=True)
        usable = gr.update(interactive=True)
        filled["name"] = arguments["name"]
        return [
            line,
            shows,
            usable,
            usable,
            offered(filled["result"]),
            offered(filled["mask"]),
            filled,
            arguments["seed"],
        ]

    def take_result(request: gr.Request, last: Any) -> list[Any]:
        session = controller.session(request)
        path = given_path({"path": last["working"]} if last else None, session, "a photograph")
        opened = controller.quick("open_file", {"path": path, "folder": str(session.new_folder())})
        value = shown(opened, last["name"])
        return [said("the result is ready to paint on"), value, None, _to_paint_on(value, None)]

    def go_on_painting(request: gr.Request, last: Any) -> Any:
        return attempt(take_result, 4)(request, last)

    when_dropped(photo, parts.message, open_photo, outputs=[mask, painter])
    when_dropped(mask, parts.message, open_mask, inputs=[photo], outputs=[painter])
    when_sample(sample, put_sample, [parts.message, photo, mask, painter])
    photo.clear(lambda: [None, None], None, [mask, painter], **INSTANT, **HIDDEN)
    mask.clear(lambda value: _to_paint_on(value, None), [photo], [painter], **INSTANT, **HIDDEN)
    inputs, outputs = [photo, mask, painted, seed, done], [slider, again, go_on, result, hole, done, seed]
    when_clicked(parts.run, parts, controller, inpaint, inputs, outputs, js=PAINTED)
    when_clicked(again, parts, controller, inpaint, inputs, outputs, js=AGAIN)
    go_on.click(
        go_on_painting, [done], [parts.message, photo, mask, painter], concurrency_id=OPENING, concurrency_limit=1,
        show_progress="minimal", show_progress_on=[parts.message], **HIDDEN,
    )  # fmt: skip


def _to_paint_on(photo: Value | None, mask: Value | None) -> Value | None:
    """Value of the painter: preview and mask."""
    if not photo:
        return None
    return {"preview": photo["preview"], "mask": mask["preview"] if mask else None}
