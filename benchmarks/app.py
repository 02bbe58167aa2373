"""Start-up time, response time and load behavior of the page.

Run from the project's folder as ``python -m benchmarks.app``; it needs Debian's chromium.
"""

import contextlib
import sys
import tempfile
import threading
import time
from functools import partial
from io import BytesIO
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from benchmarks import app_client
from benchmarks.app_client import Session, running_server
from benchmarks.runner import Benchmark
from psal.data.samples import samples
from psal.measure.memory import memory_of_tree
from psal.measure.quantities import Quantities
from psal.measure.record import Cell

SESSIONS = 30
LARGE = 6000, 4000  # pixels
MAX_WAIT = 600  # seconds until a session counts as lost
SETTLING_SECONDS = 5
MIN_REMAINING = 1.0  # seconds; the page shows whole ones
# Edits that take a while, of a photograph of 2,048 × 2,048 pixels.
LONG_SIDE = 2048
LONG_EDITS: dict[str, tuple[str, dict[str, Any]]] = {
    "inpaint": (
        "/marks", {"json": {"kind": "rectangle", "points": [[300, 300], [1400, 1700]], "layer": "hole", "fill": True}}
    ),
    "outpaint": ("/edits/outpaint?left=512&right=512&top=512&bottom=512", {}),
    "colorize": ("/edits/colorize?sample=1", {}),
    "reconstruct": ("/edits/reconstruct?sample=1", {}),
    "upscale": ("/edits/upscale?scale=1.9", {}),
}  # fmt: skip

BENCHMARK = Benchmark(
    "app",
    "Measure the page: start, response time, and load by several sessions.",
    ["start", "weight", "answer", "large", "estimate", "load"],
    packages=("torch", "numpy", "pillow", "starlette", "uvicorn", "playwright"),
)


class Load(NamedTuple):
    """Response times in seconds, failed requests, and memory of the server in bytes before and after."""

    times: list[float]
    failures: list[str]
    before: int
    after: int


def start(browser: Browser, count: int) -> Cell:
    """From the command to the usable page; the first start is a warm-up."""
    seconds = []
    for _ in range(count + 1):
        begun = time.perf_counter()
        with running_server() as server:
            page = app_client.open_page(browser, server.url)
            seconds.append(time.perf_counter() - begun)
            page.close()
    found = Quantities("start")
    found.add("from the command to the usable page", seconds[1:], unit="s", value=median(seconds[1:]))
    return found.cell(seconds=seconds[1:])


def weight(browser: Browser) -> Cell:
    """What the browser loads until the page is usable."""
    with running_server() as server:
        measured = app_client.weight(browser, server.url)
    found = Quantities("page")
    found.add("requests", [measured.requests])
    found.add("size", [measured.bytes / 1e3], unit="kB")
    return found.cell(weight=measured._asdict())


def answer(browser: Browser, strokes: int) -> Cell:
    """From releasing the brush to the result, on the sample of 512 × 512 pixels; the first two fills are a warm-up."""
    seconds = _fill(browser, Image.fromarray(samples()[0].picture), [[400, 100], [420, 200]], 60, strokes)
    found = Quantities("answer")
    found.add(
        "fill of 512 × 512 pixels, from releasing the brush to the result", seconds, unit="s", value=median(seconds)
    )
    return found.cell(seconds=seconds)


def large(browser: Browser, strokes: int) -> Cell:
    """The same with a hole of 40 × 40 pixels in a photograph of 24 megapixels."""
    photo = Image.fromarray(samples()[0].picture).resize(LARGE)
    seconds = _fill(browser, photo, [[4800, 1000]], 40, strokes)
    found = Quantities("large")
    found.add("40 × 40 pixels of 24 megapixels, from releasing the brush", seconds, unit="s", value=median(seconds))
    return found.cell(seconds=seconds)


def _fill(browser: Browser, photo: Image.Image, points: list[list[float]], size: int, strokes: int) -> list[float]:
    with tempfile.TemporaryDirectory() as folder, running_server() as server:
        path = Path(folder, "photo.jpg")
        photo.save(path, quality=95)
        page = app_client.open_page(browser, server.url)
        app_client.open_photo(page, path)
        return [app_client.seconds_to_fill(page, points, size) for _ in range(strokes + 2)][2:]


def estimate(side: int) -> Cell:
    """How far the remaining time that the page shows is from the actual one, at worst, over the run of each edit."""
    picture = BytesIO()
    Image.fromarray(samples()[0].picture).resize((side, side)).save(picture, "PNG", compress_level=1)
    found, ratios, runs = Quantities("estimate"), [], {}
    with running_server() as server:
        for edit, (path, options) in LONG_EDITS.items():
            session = Session(server.url)
            with contextlib.closing(session.http):
                session.open(picture.getvalue())
                run = _watch(session, path, options)
            runs[edit] = run._asdict()
            ratios += run.ratios()
            told = len(run.ratios()) / max(1, len(run.shown))
            found.add(f"{edit}: largest ratio of estimated to actual remaining time", [max(run.ratios(), default=1.0)])
            found.add(f"{edit}: states with an estimate", [100 * told], unit="%")
    found.add("all: largest ratio of estimated to actual remaining time", [max(ratios, default=1.0)])
    return found.cell(runs=runs)


class Run(NamedTuple):
    """Remaining time as it was shown: seconds since the start and the estimate, None if there was none."""

    shown: list[tuple[float, float | None]]
    seconds: float

    def ratios(self) -> list[float]:
        """Estimated to actual remaining time or the other way round, whichever is above 1."""
        pairs = [(left, self.seconds - at) for at, left in self.shown if left is not None]
        return [max(left / rest, rest / left) for left, rest in pairs if rest >= MIN_REMAINING]


def _watch(session: Session, path: str, options: dict[str, Any]) -> Run:
    begun, shown = time.perf_counter(), []
    for state in session.states(path, **options):
        if state["job"] is not None:
            shown.append((time.perf_counter() - begun, state["job"]["left"]))
        elif state["message"] is not None:
            raise RuntimeError(state["message"])
    return Run(shown, time.perf_counter() - begun)


def load(seconds: float) -> Cell:
    """Several sessions at once."""
    measured = serve_sessions(SESSIONS, seconds)
    found = Quantities(f"load, {SESSIONS} sessions for {seconds:g} s")
    found.add("response time", measured.times, unit="s", value=median(measured.times))
    found.add("response time, 95th percentile", [quantiles(measured.times, n=20)[-1]], unit="s")
    found.add("fills", [len(measured.times)])
    found.add("requests without an answer", [len(measured.failures)])
    found.add("memory after, ratio", [measured.after / measured.before], against="before")
    found.add("memory before", [measured.before / 1e9], unit="GB")
    return found.cell(load=measured._asdict())


def serve_sessions(count: int, seconds: float) -> Load:
    """Fill the sample repeatedly from concurrent sessions, each in a thread of its own."""
    times: list[float] = []
    failures: list[str] = []
    all_ready, begin = threading.Barrier(count + 1), threading.Barrier(count + 1)
    with running_server() as server:

        def fill_repeatedly(index: int) -> None:
            session = Session(server.url)
            with contextlib.closing(session.http):
                session.open_sample()
                first = session.fill(index)
                if first["message"] is not None:
                    raise RuntimeError(first["message"])
                all_ready.wait()
                begin.wait()
                end, seed = time.perf_counter() + seconds, index
                while time.perf_counter() < end:
                    session.undo()
                    sent, seed = time.perf_counter(), seed + count
                    try:
                        message = session.fill(seed)["message"]
                    except Exception as error:  # counted; the session tries again
                        message = f"{type(error).__name__}: {error}"
                    times.append(time.perf_counter() - sent)
                    if message is not None:
                        failures.append(str(message))

        def fill_or_report(index: int) -> None:
            try:
                fill_repeatedly(index)
            except Exception as error:
                failures.append(f"{type(error).__name__}: {error}")
                all_ready.abort()  # or the others would wait forever

        threads = [threading.Thread(target=fill_or_report, args=[index], daemon=True) for index in range(count)]
        for thread in threads:
            thread.start()
        try:
            all_ready.wait(timeout=MAX_WAIT)
        except threading.BrokenBarrierError:
            sys.exit(f"error: not all sessions could start: {failures[:1]}")
        before = memory_of_tree(server.pid)
        begin.wait()
        for thread in threads:
            thread.join(timeout=seconds + MAX_WAIT)
        if any(thread.is_alive() for thread in threads):
            failures.append("a session got no answer")
        return Load(times, failures, before, settled_memory(server.pid))


def settled_memory(pid: int) -> int:
    """Minimum over some seconds, in which the server ends the last sessions."""
    found = []
    for _ in range(SETTLING_SECONDS):
        time.sleep(1)
        found.append(memory_of_tree(pid))
    return min(found)


def main() -> None:
    """Measure, print the table and write results/app.json."""
    arguments = BENCHMARK.parser().parse_args()
    starts, strokes, seconds = (1, 3, 10) if arguments.quick else (5, 11, 60)
    settings = {"starts": starts, "strokes": strokes, "sessions": SESSIONS, "seconds": seconds}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=app_client.CHROMIUM, args=list(app_client.CHROMIUM_ARGUMENTS)
        )
        groups = {
            "start": partial(start, browser, starts),
            "weight": partial(weight, browser),
            "answer": partial(answer, browser, strokes),
            "large": partial(large, browser, strokes),
            "estimate": partial(estimate, 256 if arguments.quick else LONG_SIDE),
            "load": partial(load, seconds),
        }
        BENCHMARK.measure(arguments, settings, groups)
        browser.close()


if __name__ == "__main__":
    main()
