"""How soon the page is there, how soon it answers, and how it bears twenty sessions at once.

Run from the project's folder as ``python -m benchmarks.app``; it needs Debian's chromium and speaks to itself alone.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from playwright.sync_api import Browser, sync_playwright

from benchmarks import report
from benchmarks.report import Target
from psal.data.samples import samples
from psal.experiments.markdown import update_readme
from psal.io.photo import Photo
from psal.measure import machine

sys.path.insert(0, "tests")  # the page's selectors are in one file, beside the tests

from app.client import Client
from app.page import CHROMIUM, CHROMIUM_ARGUMENTS, AppPage

COMMAND = (sys.executable, "-m", "psal.cli", "app")
PACKAGES = ("torch", "numpy", "pillow", "gradio", "playwright")
STARTS, CLICKS = 5, 11
VISITORS, SECONDS = 20, 60

NOTES = """\
- Start: from the command to the page in Chromium with its buttons there; {starts} starts after one that doesn't count.
- Answer: in Chromium, from the click on "Fill again" to the message and the loaded result; the sample picture of
  512 × 512 pixels, with the sample's mask; {clicks} clicks after two that don't count.
- Load: {sessions} sessions, each of whom fills that picture again and again for {seconds} seconds, without a browser;
  the time is from sending the request to the answer, waiting in the queue included.
- Memory: proportional resident memory of the server and its workers, after a first fill by each session, and after all
  have left."""


class Load(NamedTuple):
    """What the sessions met."""

    times: list[float]
    failures: list[str]
    before: int
    after: int


@contextlib.contextmanager
def running_app() -> "Iterator[tuple[str, subprocess.Popen[str]]]":
    """The command; yields the address that it prints, and the process."""
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[3], process
        finally:
            process.terminate()


def seconds_to_start(browser: Browser) -> float:
    start = time.perf_counter()
    with running_app() as (address, _):
        page = browser.new_page()
        AppPage(page, address).open()
        seconds = time.perf_counter() - start
        page.close()
    return seconds


def seconds_to_answer(browser: Browser, clicks: int) -> list[float]:
    with running_app() as (address, _):
        page = AppPage(browser.new_page(), address).open()
        page.put_sample("inpaint")
        page.wait_for_canvas()
        page.run("inpaint", "Filled in")
        return [page.seconds_to_inpaint_again() for _ in range(clicks + 1)][1:]


def bear(sessions: int, seconds: float) -> Load:
    """Many at once, each in a thread."""
    times: list[float] = []
    failures: list[str] = []
    ready, go_on = threading.Barrier(sessions + 1), threading.Barrier(sessions + 1)
    with tempfile.TemporaryDirectory() as folder, running_app() as (address, process):
        files = write_sample(Path(folder))

        def visit(number: int) -> None:
            client = Client(address).open()
            with contextlib.closing(client.http), client.staying():
                _, photo = client.open_photo(client.drop(files["photo"]))
                _, mask = client.open_mask(client.drop(files["mask"]), photo)
                first = client.fill(photo, mask, number)
                ready.wait()
                go_on.wait()
                end, seed = time.perf_counter() + seconds, 0
                while time.perf_counter() < end:
                    start, seed = time.perf_counter(), seed + 1
                    try:
                        message = client.fill(photo, mask, sessions * seed + number)
                    except Exception as error:  # counted, and the session tries again
                        message = f"{type(error).__name__}: {error}"
                    times.append(time.perf_counter() - start)
                    if "Filled in" not in message:
                        failures.append(message)
                assert "Filled in" in first, first

        def visit_or_say_why(number: int) -> None:
            try:
                visit(number)
            except Exception as error:
                failures.append(f"{type(error).__name__}: {error}")
                ready.abort()  # or the others would wait for this one

        threads = [threading.Thread(target=visit_or_say_why, args=[number], daemon=True) for number in range(sessions)]
        for thread in threads:
            thread.start()
        try:
            ready.wait(timeout=600)
        except threading.BrokenBarrierError:
            sys.exit(f"error: the sessions did not get in: {failures[:1]}")
        before = memory_of(process.pid)
        go_on.wait()
        for thread in threads:
            thread.join(timeout=seconds + 600)
        if any(thread.is_alive() for thread in threads):
            failures.append("a session got no answer")
        return Load(times, failures, before, settled_memory(process.pid))


def write_sample(folder: Path) -> dict[str, Path]:
    """The sample to fill as files."""
    sample = samples()[0]
    assert sample.partner is not None
    paths = {name: folder / f"{name}.png" for name in ("photo", "mask")}
    Photo(sample.picture).save(paths["photo"])
    Photo(sample.partner).save(paths["mask"])
    return paths


def memory_of(pid: int) -> int:
    """Bytes of resident memory of a process and those that it started; what several share counts once."""
    total = 0
    for process in [pid, *children_of(pid)]:
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def children_of(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in found for child in path.read_text().split()]


def settled_memory(pid: int) -> int:
    """The least of some seconds, for the last sessions are still being seen off."""
    found = []
    for _ in range(5):
        time.sleep(1)
        found.append(memory_of(pid))
    return min(found)


def _row(target: Target, values: list[Any]) -> dict[str, Any]:
    """The median of single measurements, the least and the greatest."""
    return report.row(target, median(values), min(values), max(values))


def main() -> None:
    """Measure, print the table, and write it to results/ and the README; with --quick, to build/."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.app", description=main.__doc__)
    parser.add_argument("--quick", action="store_true", help="one start, few clicks, ten seconds of load")
    quick = parser.parse_args().quick
    starts, clicks, seconds = (1, 3, 10) if quick else (STARTS, CLICKS, SECONDS)
    about = machine.metadata("python -m benchmarks.app" + " --quick" * quick, PACKAGES)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(CHROMIUM_ARGUMENTS))
        print("measuring: start", file=sys.stderr, flush=True)
        begun = [seconds_to_start(browser) for _ in range(starts + 1)][1:]
        print("measuring: answer", file=sys.stderr, flush=True)
        answered = seconds_to_answer(browser, clicks)
        browser.close()
    print("measuring: load", file=sys.stderr, flush=True)
    load = bear(VISITORS, seconds)
    waited = f"{VISITORS} sessions for {seconds} s: seconds to an answer"
    rows = [
        _row(Target("from the command to the usable page: seconds", 8, 5), begun),
        _row(Target("512-pixel fill, from the click to the result: seconds", 1, 0.5), answered),
        _row(Target(waited), load.times),
        _row(Target("the same: fills"), [len(load.times)]),
        _row(Target("the same: without an answer", 0), [len(load.failures)]),
        _row(Target("the same: memory afterwards over that before", 1.1, 1.02), [load.after / load.before]),
        _row(Target("the same: memory before, GB"), [load.before / 1e9]),
    ]
    notes = NOTES.format(starts=starts, clicks=clicks, sessions=VISITORS, seconds=seconds)
    singles: dict[str, Any] = {"start": begun, "answer": answered, "load": load._asdict()}
    record = {"metadata": about, "rows": rows, "singles": singles, "notes": notes}
    path = Path("build/app.json" if quick else "results/app.json")
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    text = report.app_markdown(record)
    path.with_suffix(".md").write_text(text)
    if not quick:
        update_readme(Path("README.md"), "app", text)
    print(report.table(rows))
    print(f"\nwritten to {path} and {path.with_suffix('.md')}", file=sys.stderr)


if __name__ == "__main__":
    main()
