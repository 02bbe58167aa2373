"""Edits of an open photograph, which run in the background while the page hears of their progress."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from psal.app.lanes import Job
from psal.app.limits import MAX_VARIANTS
from psal.app.open_document import OpenDocument
from psal.app.reading import SEEDS, options_of, read_file, seed_of, whole_number
from psal.app.refusals import LOG, RefusedError
from psal.app.service import Service
from psal.app.sessions import Session
from psal.app.steps import Bits, Fill, Mark
from psal.app.storage import DISK_FULL, is_disk_full
from psal.app.workers import StoppedError
from psal.editing.registry import MAX_EDGE, Edit
from psal.errors import UsageError
from psal.messages import describe

BUSY = "an edit of this photograph is running: wait for it, or stop it"
NOTHING_MARKED = "nothing is marked: paint over what to remove"


def fill_values(values: Any) -> tuple[int, int]:
    """Seed and feather of a request to fill.

    Raises:
        UsageError: if one cannot be used.
    """
    return seed_of(values), whole_number(values.get("feather", 0), "the feather", 0, MAX_EDGE)


class PhotoJobs:
    """Starts edits, one at a time for a photograph."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._tasks: set[asyncio.Task[None]] = set()

    def check_free(self, opened: OpenDocument) -> None:
        """Check that no edit of the photograph runs.

        Raises:
            RefusedError: if one does.
        """
        if opened.job is not None:
            raise RefusedError(409, BUSY)

    async def start_fill(self, session: Session, opened: OpenDocument, values: Any, mark: Mark | None) -> None:
        """Fill what is marked.

        Args:
            session: whose photograph it is.
            opened: the photograph.
            values: JSON object with the ``seed`` and the ``feather``.
            mark: the stroke that started the fill and becomes one step with it, or None.
        """
        self.check_free(opened)
        document, (seed, feather) = opened.document, fill_values(values)
        hole = await run_in_threadpool(document.marked, "hole")
        if hole is None:
            raise UsageError(NOTHING_MARKED)
        source = await run_in_threadpool(document.marked, "source")
        settings: dict[str, Any] = {
            "source": _file_of(source) if source else None, "feather": feather,
            "guide": str(document.guide[1]) if document.guide else None,
        }  # fmt: skip
        area = await run_in_threadpool(document.area_of, hole, feather)
        fill = Fill("Remove", hole, area, document.new_path(), [document.new_path()], [seed], settings)

        async def work(job: Job) -> None:
            try:
                await self._fill(session, opened, job, fill, fill.variants[0], seed)
                await run_in_threadpool(document.filled, fill, mark)
            except BaseException:
                fill.forget(applied=False)
                raise

        self._start(opened, "Removing", work)

    async def start_variant(self, session: Session, opened: OpenDocument) -> None:
        """Fill the last hole again with another seed."""
        self.check_free(opened)
        document = opened.document
        fill = document.last_fill()
        if len(fill.variants) >= MAX_VARIANTS:
            raise UsageError(f"there are {MAX_VARIANTS} variants already, which is as many as are kept")
        if fill.settings.get("guide") and not Path(fill.settings["guide"]).exists():
            raise UsageError("the guide of this fill is no longer there: undo the fill and remove again")
        seed = max(fill.seeds) + 1 if max(fill.seeds) < SEEDS[1] else min(fill.seeds) - 1

        async def work(job: Job) -> None:
            values = document.new_path()
            await self._fill(session, opened, job, fill, values, seed)
            await run_in_threadpool(document.add_variant, fill, values, seed)

        self._start(opened, "Trying another fill", work)

    async def start_edit(self, session: Session, opened: OpenDocument, edit: Edit, request: Request) -> None:
        """Run an edit of the whole picture."""
        self.check_free(opened)
        options = options_of(edit, request.query_params)
        folder = session.new_folder()
        partner, name = None, ""
        try:
            if edit.partner == "reference":
                partner = folder / "reference"
                if request.query_params.get("sample"):
                    made = folder / "reference.png"
                    await self._service.file(
                        session, "write_sample", {"edit": edit.name, "role": "reference", "path": str(made)}
                    )
                    partner, name = made, made.name
                else:
                    name = await read_file(request, partner)
                if not partner.stat().st_size:
                    raise UsageError("choose a reference picture first")
            self.check_free(opened)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        document = opened.document
        canvas = document.folder / f"canvas-{folder.name}"

        async def work(job: Job) -> None:
            try:
                canvas.mkdir()
                arguments = {
                    "edit": edit.name, "pixels": str(document.canvas.folder / "pixels.npy"), "folder": str(canvas),
                    "partner": str(partner) if partner else None, "partner_name": name, "options": options,
                }  # fmt: skip
                await self._service.edit(session, job, "edit", arguments)
                await run_in_threadpool(document.replaced, edit.name.capitalize(), canvas)
            except BaseException:
                shutil.rmtree(canvas, ignore_errors=True)
                raise
            finally:
                shutil.rmtree(folder, ignore_errors=True)

        self._start(opened, f"{edit.name.capitalize()}", work)

    async def _fill(
        self, session: Session, opened: OpenDocument, job: Job, fill: Fill, values: Path, seed: int
    ) -> None:
        arguments = {
            "pixels": str(opened.document.canvas.folder / "pixels.npy"), "hole": _file_of(fill.hole),
            "area": _file_of(fill.area), "before": str(fill.before) if fill.before.exists() else None,
            "seed": seed, "out": str(values),
        }  # fmt: skip
        await self._service.edit(session, job, "fill", arguments | fill.settings)

    def _start(self, opened: OpenDocument, label: str, work: Callable[[Job], Awaitable[None]]) -> None:
        job = Job(label, opened.notify)
        opened.job, opened.message = job, None

        async def run() -> None:
            try:
                await work(job)
            except StoppedError:
                opened.message = {"kind": "info", "text": "stopped"}
            except Exception as error:
                opened.message = {"kind": "error", "text": DISK_FULL if is_disk_full(error) else describe(error)}
                LOG.warning("%s failed: %s", label, opened.message["text"][:200])
            finally:
                opened.job = None
                opened.notify()

        task = asyncio.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _file_of(bits: Bits) -> list[Any]:
    """Box and file of a mask, for a worker."""
    return [bits.box, str(bits.path)]
