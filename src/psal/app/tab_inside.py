"""The tab *Look inside*."""

from pathlib import Path
from typing import Any

import gradio as gr

from psal.app.controller import Controller, attempt, duration, given_path, given_seed, given_whole_number, said
from psal.app.limits import INSIDE_SIDE
from psal.app.parts import (
    HIDDEN,
    OPENING,
    controls,
    download,
    offered,
    picker,
    when_clicked,
    when_dropped,
    when_sample,
)
from psal.errors import UsageError

MAX_NEIGHBORS, MAX_PATCH_SIZE, MAX_ITERATIONS = 10, 15, 20
SEEDINGS = ("tree", "random")
HEAD = ["row", "column", "weight"]


def build_inside_tab(controller: Controller) -> None:
    """Two pictures or one; a click on a pixel shows the places that it attends to."""
    gr.Markdown(
        "Match two pictures, or one with itself, then click a pixel of the first: the second shows the places that it "
        "attends to. A larger ring means a larger weight. Pictures are resized to at most "
        f"{INSIDE_SIDE} pixels per side."
    )
    with gr.Row():
        with gr.Column(min_width=240):
            photo = picker("Picture that attends (query)", "inside-photo")
        with gr.Column(min_width=240):
            reference = picker("Picture attended to (key); by default the first one", "inside-reference")
    sample = gr.Button("Try a sample", size="sm", elem_id="inside-sample")
    with gr.Row():
        neighbors = gr.Slider(1, MAX_NEIGHBORS, 3, step=1, label="Neighbors k", elem_id="inside-neighbors")
        patch_size = gr.Slider(1, MAX_PATCH_SIZE, 7, step=2, label="Patch size", elem_id="inside-patch")
        iterations = gr.Slider(
            -1, MAX_ITERATIONS, -1, step=1, label="Iterations (−1: the default)", elem_id="inside-iterations"
        )
    with gr.Row():
        init = gr.Radio(list(SEEDINGS), value="tree", label="Seeding", elem_id="inside-init", min_width=200)
        aggregate = gr.Checkbox(False, label="Aggregate over the patch", elem_id="inside-aggregate", min_width=220)
        temperature = gr.Number(1.0, label="Temperature", minimum=1e-6, elem_id="inside-temperature", min_width=120)
    parts = controls("inside", "Match")
    with gr.Row():
        query = gr.Image(label="Click a pixel", interactive=False, elem_id="inside-query", buttons=[], visible=False)
        key = gr.Image(
            label="It attends to", interactive=False, elem_id="inside-key", buttons=["fullscreen"], visible=False
        )
    with gr.Row(visible=False) as fields:
        row = gr.Number(0, label="Row", precision=0, elem_id="inside-row", min_width=90)
        column = gr.Number(0, label="Column", precision=0, elem_id="inside-column", min_width=90)
        go = gr.Button("Look from this pixel", elem_id="inside-look")
    table = gr.Dataframe(
        headers=HEAD, datatype=["number"] * 3, label="Places and weights, the heaviest first", interactive=False,
        elem_id="inside-table", max_height=260, visible=False,
    )  # fmt: skip
    with gr.Row():
        figure = download("Download the figure", "inside-figure")
        csv = download("Download all weights (CSV)", "inside-csv")
    matched = gr.State(None)  # folder of the matches
    last = gr.State(None)  # a file of the last look
    looked = [query, key, fields, row, column, table, figure, csv, last]

    def look_from(request: gr.Request, folder: Any, at: tuple[Any, Any], before: Any) -> tuple[str, list[Any]]:
        session = controller.session(request)
        path = given_path({"path": folder} if folder else None, session, "a picture, match it")
        numbers = [given_whole_number(x, what) for x, what in zip(at, ("the row", "the column"), strict=True)]
        out = str(session.new_folder())
        found = controller.quick("look", {"folder": path, "row": numbers[0], "column": numbers[1], "out": out})
        session.forget(before)
        rows = [[place[0], place[1], f"{place[2]:.4f}"] for place in found["places"]]
        more = f", the {len(rows)} heaviest of them shown" if found["count"] > len(rows) else ""
        line = f"row {found['row']}, column {found['column']} attends to {found['count']} places{more}"
        shown = gr.update(visible=True)
        return line, [
            gr.update(value=found["query"], visible=True), gr.update(value=found["key"], visible=True), shown,
            found["row"], found["column"], gr.update(value=rows, visible=True), offered(found["figure"]),
            offered(found["table"]), found["figure"],
        ]  # fmt: skip

    def match(request: gr.Request, progress: gr.Progress, *values: Any) -> list[Any]:
        photo_value, reference_value, *settings, old_folder, before = values
        session = controller.session(request)
        arguments = {
            "photo": given_path(photo_value, session, "a picture"),
            "reference": given_path(reference_value, session, "a second picture") if reference_value else None,
            **_given_settings(*settings),
        }
        found = controller.work("match", arguments, "matching", progress, request)
        if old_folder:
            session.forget(Path(old_folder) / "about.json")
        middle = found["size"][0] // 2, found["size"][1] // 2
        line, shown = look_from(request, found["folder"], middle, before)
        return [said(f"matched in {duration(found['seconds'])}; {line}"), found["folder"], *shown]

    def look(request: gr.Request, folder: Any, at_row: Any, at_column: Any, before: Any) -> Any:
        def handle() -> list[Any]:
            line, shown = look_from(request, folder, (at_row, at_column), before)
            return [said(line), *shown]

        return attempt(handle, 1 + len(looked))()

    def look_at_click(request: gr.Request, event: gr.SelectData, folder: Any, before: Any) -> Any:
        x, y = event.index if isinstance(event.index, list | tuple) else (0, 0)
        return look(request, folder, y, x, before)

    def put_samples(request: gr.Request) -> list[Any]:
        return [
            controller.open(controller.sample("reconstruct", role, request), request) for role in ("photo", "reference")
        ]

    for field in (photo, reference):
        when_dropped(field, parts.message, lambda request, value: [controller.open(value, request)])
    when_sample(sample, put_samples, [parts.message, photo, reference])
    settings = [neighbors, patch_size, iterations, init, aggregate, temperature, parts.seed]
    when_clicked(parts.run, parts, controller, match, [photo, reference, *settings, matched, last], [matched, *looked])
    options: dict[str, Any] = {
        "concurrency_id": OPENING, "concurrency_limit": 1, "show_progress": "minimal",
        "show_progress_on": [parts.message], **HIDDEN,
    }  # fmt: skip
    query.select(look_at_click, [matched, last], [parts.message, *looked], **options)
    go.click(look, [matched, row, column, last], [parts.message, *looked], **options)


def _given_settings(
    neighbors: Any, patch_size: Any, iterations: Any, init: Any, aggregate: Any, temperature: Any, seed: Any
) -> dict[str, Any]:
    """Settings that are within the page's limits, whoever sent them."""
    for what, value, low, high in (
        ("k", neighbors, 1, MAX_NEIGHBORS),
        ("the patch size", patch_size, 1, MAX_PATCH_SIZE),
        ("iterations", iterations, -1, MAX_ITERATIONS),
    ):
        if not isinstance(value, int) or not low <= value <= high:
            raise UsageError(f"{what} must be a whole number from {low} to {high}, got {value!r}")
    if not isinstance(temperature, int | float) or not 0 < temperature < float("inf"):
        raise UsageError(f"the temperature must be a number above 0, got {temperature!r}")
    return {
        "neighbors": neighbors, "patch_size": patch_size, "iterations": iterations, "init": str(init),
        "aggregate": bool(aggregate), "temperature": float(temperature), "seed": given_seed(seed),
    }  # fmt: skip
