"""The tabs *Colour*, *Rebuild* and *Enlarge*: pictures in, a picture out."""

from typing import Any

import gradio as gr

from psal.app.desk import Desk, duration, given_name, given_path, given_seed, said
from psal.app.limits import MOST_PIXELS_ENLARGED, MOST_PIXELS_REBUILT, megapixels
from psal.app.parts import controls, download, offered, picker, when_clicked, when_dropped, when_sample
from psal.errors import UsageError

SMALLEST_SCALE, LARGEST_SCALE = 1.1, 4.0


def build_colour_tab(desk: Desk) -> None:
    """A grey picture and a reference."""
    gr.Markdown("A grey photograph takes on the colours of another one that shows the same scene, or one like it.")
    fields = _pictures(desk, "colour", "colorize", {"photo": "Grey photograph", "reference": "Colour reference"})
    _results(desk, "colour", "Colour", ("colouring", "coloured"), fields)


def build_rebuild_tab(desk: Desk) -> None:
    """Two pictures, the result and the shift map."""
    gr.Markdown(
        "The first picture is rebuilt from nothing but the pixels of the second: a test of how well patches are "
        f"matched. Either may have up to {megapixels(MOST_PIXELS_REBUILT)}."
    )
    fields = _pictures(desk, "rebuild", "reconstruct", {"photo": "Picture to rebuild", "reference": "Made of"})
    _results(desk, "rebuild", "Rebuild", ("rebuilding", "rebuilt"), fields, shifts=True)


def build_enlarge_tab(desk: Desk) -> None:
    """A factor, and before and after."""
    gr.Markdown(
        "A photograph is enlarged with detail that it shows elsewhere at another size. The result may have up to "
        f"{megapixels(MOST_PIXELS_ENLARGED)}. Turn the wheel over the result to look closer."
    )
    fields = _pictures(desk, "enlarge", "upscale", {"photo": "Photograph"})
    scale = gr.Slider(SMALLEST_SCALE, LARGEST_SCALE, 2, step=0.1, label="Factor", elem_id="enlarge-scale")
    _results(desk, "enlarge", "Enlarge", ("enlarging", "enlarged"), fields, scale=scale)


def _pictures(desk: Desk, tab: str, sample: str, labels: dict[str, str]) -> tuple[list[gr.HTML], gr.HTML]:
    """Fields for pictures by their role, filled by dropping or by the sample; and where to say what is wrong."""
    with gr.Row():
        fields = {}
        for role, label in labels.items():
            with gr.Column(min_width=240):
                fields[role] = picker(label, f"{tab}-{role}")
    button = gr.Button("Try a sample", size="sm", elem_id=f"{tab}-sample")
    message = gr.HTML("", visible=True, elem_id=f"{tab}-opening", apply_default_css=False, js_on_load=None)

    def put_samples(request: gr.Request) -> list[Any]:
        return [desk.open(desk.sample(sample, role, request), request) for role in labels]

    for field in fields.values():
        when_dropped(field, message, lambda request, value: [desk.open(value, request)])
    when_sample(button, put_samples, [message, *fields.values()])
    return list(fields.values()), message


def _results(
    desk: Desk, tab: str, verb: str, words: tuple[str, str], given: tuple[list[gr.HTML], gr.HTML],
    *, shifts: bool = False, scale: gr.Slider | None = None,
) -> None:  # fmt: skip
    """The buttons, and what comes out."""
    fields, _ = given
    parts = controls(tab, verb)
    slider = gr.ImageSlider(
        label="Before and after", interactive=False, elem_id=f"{tab}-slider", buttons=["fullscreen"], visible=False
    )
    outputs: list[Any] = [slider]
    if shifts:
        outputs.append(
            gr.Image(
                label="Where each pixel was found: the hue is the direction (red right, yellow-green down, cyan left, "
                "violet up), the saturation the distance",
                interactive=False,
                elem_id=f"{tab}-shifts",
                buttons=["fullscreen"],
                visible=False,
            )
        )
    with gr.Row():
        outputs.append(download("Download the picture", f"{tab}-result"))
        if shifts:
            outputs.append(download("Download the shifts", f"{tab}-shifts-file"))
    last = gr.State(None)
    inputs: list[Any] = [*fields, *([] if scale is None else [scale]), parts.seed, last]

    def work(request: gr.Request, progress: gr.Progress, *values: Any) -> list[Any]:
        visitor = desk.visitor(request)
        *pictures, number, before = values
        arguments: dict[str, Any] = {"seed": given_seed(number), "name": given_name(pictures[0] or {"path": ""})}
        if scale is not None:
            arguments["scale"] = _given_scale(pictures.pop())
        for role, what, value in zip(("photo", "reference"), ("a picture", "a second picture"), pictures, strict=False):
            arguments[role] = given_path(value, visitor, what)
        made = desk.work(tab, arguments, words[0], progress, request)
        visitor.forget(before)
        size = f"{made['width']} × {made['height']} pixels"
        shown: list[Any] = [gr.update(value=(made["before"], made["after"]), visible=True)]
        files = [offered(made["result"])]
        if shifts:
            shown.append(gr.update(value=made["shifts_shown"], visible=True))
            files.append(offered(made["shifts"]))
        line = said(f"{words[1]} in {duration(made['seconds'])}: {size}, seed {arguments['seed']}")
        return [line, *shown, *files, made["result"]]

    when_clicked(parts.run, parts, desk, work, inputs, [*outputs, last])


def _given_scale(value: Any) -> float:
    if not isinstance(value, int | float) or not SMALLEST_SCALE <= value <= LARGEST_SCALE:
        raise UsageError(f"the factor must be from {SMALLEST_SCALE:g} to {LARGEST_SCALE:g}, got {value!r}")
    return float(value)
