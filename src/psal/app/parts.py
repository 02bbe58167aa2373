"""Parts of the tabs, and how a button runs a job."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import gradio as gr

from psal.app.controller import Controller, attempt, said
from psal.app.limits import MAX_CONCURRENT_EDITS
from psal.errors import UsageError

EDIT_QUEUE, OPENING = "edits", "opening"  # queues
INSTANT: dict[str, Any] = {"concurrency_id": "instant", "concurrency_limit": None, "show_progress": "hidden"}
HIDDEN: dict[str, Any] = {"api_visibility": "private"}  # events are not part of a public API
Handler = Callable[..., Any]


def asset(name: str) -> str:
    """Text of one of the page's scripts or styles."""
    return (files("psal.app") / "assets" / name).read_text(encoding="utf-8")


def picker(label: str, name: str) -> gr.HTML:
    """A field to drop a picture on."""
    return gr.HTML(
        None, label=label, html_template=asset("picker.html"), js_on_load=asset("picker.js"),
        apply_default_css=False, elem_id=name,
    )  # fmt: skip


def message_line(name: str) -> gr.HTML:
    """Line for messages and progress."""
    return gr.HTML(
        "", html_template='<div aria-live="polite">${value}</div>', js_on_load=None, elem_id=name,
        elem_classes="message", apply_default_css=False,
    )  # fmt: skip


@dataclass(frozen=True)
class Controls:
    """Controls that run a tab's job."""

    seed: gr.Number
    run: gr.Button
    stop: gr.Button
    message: gr.HTML


def controls(tab: str, verb: str) -> Controls:
    """The seed of the search, a button that runs, one that stops, and the line of messages."""
    with gr.Row(elem_classes="controls"):
        seed = gr.Number(0, label="Seed", precision=0, elem_id=f"{tab}-seed", min_width=80, scale=1)
        run = gr.Button(verb, variant="primary", elem_id=f"{tab}-run", min_width=90, scale=3)
        stop = gr.Button("Stop", variant="stop", elem_id=f"{tab}-stop", min_width=70, scale=1)
    return Controls(seed, run, stop, message_line(f"{tab}-message"))


def download(label: str, name: str) -> gr.DownloadButton:
    """A button to download a file, once there is one."""
    return gr.DownloadButton(label, interactive=False, elem_id=name, size="sm")


def offered(path: str) -> Any:
    """A download button that has a file now."""
    return gr.update(value=path, interactive=True)


def when_clicked(
    button: gr.Button, parts: Controls, controller: Controller, work: Handler, inputs: Sequence[Any],
    outputs: Sequence[Any], js: str | None = None,
) -> None:  # fmt: skip
    """Connect a button to a job, and the stop button to its end, whether it waits or runs.

    Args:
        button: to click.
        parts: of the tab.
        controller: runs the job.
        work: takes the request, the progress and the inputs; returns what to say and the outputs.
        inputs, outputs: components.
        js: what the page does to the inputs before they are sent.
    """

    # Gradio passes what annotations and defaults ask for, and the inputs behind it.
    def run(request: gr.Request, progress: gr.Progress = gr.Progress(), *given: Any) -> Any:  # noqa: B008
        return attempt(work, 1 + len(outputs))(request, progress, *given)

    event = button.click(
        run, list(inputs), [parts.message, *outputs], js=js, concurrency_id=EDIT_QUEUE,
        concurrency_limit=MAX_CONCURRENT_EDITS, trigger_mode="once", show_progress="full",
        show_progress_on=[parts.message], **HIDDEN,
    )  # fmt: skip

    def stop(request: gr.Request) -> Any:
        return attempt(lambda: [controller.stop(request)], 1)()[0]

    parts.stop.click(stop, None, [parts.message], cancels=[event], **INSTANT, **HIDDEN)


def when_dropped(
    field: gr.HTML, message: gr.HTML, handle: Handler, inputs: Sequence[Any] = (),
    outputs: Sequence[Any] = (),
) -> None:  # fmt: skip
    """Connect a field to a handler for dropped files.

    Args:
        field: of :func:`picker`.
        message: line for errors; after an error the field is emptied.
        handle: takes the request, the field's value and the inputs; returns the field's new value and the outputs.
        inputs, outputs: further components.
    """
    count = 2 + len(outputs)

    def opened(request: gr.Request, value: Any, *given: Any) -> Any:
        if isinstance(value, dict) and value.get("problem"):
            raise UsageError(f"{value.get('name')}: {value['problem']}")
        return ["", *handle(request, value, *given)]

    def take(request: gr.Request, *given: Any) -> Any:
        result = attempt(opened, count)(request, *given)
        if result[0]:  # an unusable file is removed from the field
            result[1] = None
        return result

    field.upload(
        take, [field, *inputs], [message, field, *outputs], concurrency_id=OPENING,
        concurrency_limit=1, show_progress="minimal", show_progress_on=[message], **HIDDEN,
    )  # fmt: skip


def when_sample(button: gr.Button, handle: Handler, outputs: Sequence[Any]) -> None:
    """Connect a button to the samples; the first output is the message."""

    def put(request: gr.Request) -> Any:
        return attempt(lambda: [said("the sample is loaded"), *handle(request)], len(outputs))()

    button.click(
        put, None, list(outputs), concurrency_id=OPENING, concurrency_limit=1, show_progress="minimal",
        show_progress_on=[outputs[0]], **HIDDEN,
    )  # fmt: skip
