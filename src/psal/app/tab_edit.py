"""The tabs of the edits that need no painting: pictures in, a picture out."""

from typing import Any

import gradio as gr

from psal.app.controller import Controller, duration, given_name, given_path, given_seed, said
from psal.app.limits import MAX_RECONSTRUCT_PIXELS, MAX_UPSCALED_PIXELS, megapixels
from psal.app.parts import controls, download, offered, picker, when_clicked, when_dropped, when_sample
from psal.editing.registry import MAX_SCALE, Edit
from psal.errors import UsageError

MIN_SCALE = 1.1
DESCRIPTIONS = {
    "colorize": "Give a gray photograph the colors of another one that shows the same scene, or a similar one.",
    "reconstruct": (
        "Rebuild the first picture from the pixels of the second: a test of how well patches are matched. Each may "
        f"have up to {megapixels(MAX_RECONSTRUCT_PIXELS)}."
    ),
    "upscale": (
        "Enlarge a photograph with detail that it shows elsewhere at another size. The result may have up to "
        f"{megapixels(MAX_UPSCALED_PIXELS)}. Turn the wheel over the result to look closer."
    ),
}
LABELS = {
    "colorize": {"photo": "Gray photograph", "reference": "Color reference"},
    "reconstruct": {"photo": "Picture to rebuild", "reference": "Picture to take pixels from"},
    "upscale": {"photo": "Photograph"},
}


def build_edit_tab(controller: Controller, edit: Edit) -> None:
    """Fields for the pictures, the options, the buttons, and before and after."""
    gr.Markdown(DESCRIPTIONS[edit.name])
    fields = _pictures(controller, edit)
    scale = None
    if any(option.name == "scale" for option in edit.options):
        scale = gr.Slider(MIN_SCALE, MAX_SCALE, 2, step=0.1, label="Scale", elem_id=f"{edit.name}-scale")
    _results(controller, edit, fields, scale)


def _pictures(controller: Controller, edit: Edit) -> list[gr.HTML]:
    """Fields for pictures, filled by dropping a file or by the sample."""
    fields = {}
    with gr.Row():
        for role, label in LABELS[edit.name].items():
            with gr.Column(min_width=240):
                fields[role] = picker(label, f"{edit.name}-{role}")
    button = gr.Button("Try a sample", size="sm", elem_id=f"{edit.name}-sample")
    message = gr.HTML("", visible=True, elem_id=f"{edit.name}-opening", apply_default_css=False, js_on_load=None)

    def put_samples(request: gr.Request) -> list[Any]:
        return [controller.open(controller.sample(edit.name, role, request), request) for role in fields]

    for field in fields.values():
        when_dropped(field, message, lambda request, value: [controller.open(value, request)])
    when_sample(button, put_samples, [message, *fields.values()])
    return list(fields.values())


def _results(controller: Controller, edit: Edit, fields: list[gr.HTML], scale: gr.Slider | None) -> None:
    """The buttons, and what comes out."""
    parts = controls(edit.name, edit.name.capitalize())
    slider = gr.ImageSlider(
        label="Before and after", interactive=False, elem_id=f"{edit.name}-slider", buttons=["fullscreen"],
        visible=False,
    )  # fmt: skip
    outputs: list[Any] = [slider]
    if edit.shifts == "picture":
        outputs.append(
            gr.Image(
                label="Where each pixel was found: the hue is the direction (red right, yellow-green down, cyan left, "
                "violet up), the saturation the distance",
                interactive=False,
                elem_id=f"{edit.name}-shifts",
                buttons=["fullscreen"],
                visible=False,
            )
        )
    with gr.Row():
        outputs.append(download("Download the picture", f"{edit.name}-result"))
        if edit.shifts == "picture":
            outputs.append(download("Download the shifts", f"{edit.name}-shifts-file"))
    last = gr.State(None)
    inputs: list[Any] = [*fields, *([] if scale is None else [scale]), parts.seed, last]

    def work(request: gr.Request, progress: gr.Progress, *values: Any) -> list[Any]:
        session = controller.session(request)
        *pictures, seed, before = values
        options: dict[str, Any] = {"seed": given_seed(seed)}
        if scale is not None:
            options["scale"] = _given_scale(pictures.pop())
        paths = [
            given_path(value, session, what)
            for value, what in zip(pictures, ("a picture", "a second picture"), strict=False)
        ]
        arguments = {
            "edit": edit.name, "photo": paths[0], "partner": paths[1] if len(paths) > 1 else None,
            "options": options, "name": given_name(pictures[0]),
        }  # fmt: skip
        made = controller.work("edit", arguments, edit.name, progress, request)
        session.forget(before)
        shown: list[Any] = [gr.update(value=(made["before"], made["after"]), visible=True)]
        files = [offered(made["result"])]
        if edit.shifts == "picture":
            shown.append(gr.update(value=made["shifts_shown"], visible=True))
            files.append(offered(made["shifts"]))
        size = f"{made['width']} × {made['height']} pixels"
        line = said(f"done in {duration(made['seconds'])}: {size}, seed {options['seed']}")
        return [line, *shown, *files, made["result"]]

    when_clicked(parts.run, parts, controller, work, inputs, [*outputs, last])


def _given_scale(value: Any) -> float:
    if not isinstance(value, int | float) or not MIN_SCALE <= value <= MAX_SCALE:
        raise UsageError(f"the scale must be from {MIN_SCALE:g} to {MAX_SCALE:g}, got {value!r}")
    return float(value)
