"""Routes of an open photograph: open, look at, mark, edit, undo, download."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from psal.app import marking, tiles
from psal.app.canvas import LAYERS, Layer
from psal.app.document import Document
from psal.app.limits import MAX_STEPS, MAX_VARIANTS
from psal.app.open_document import OpenDocument
from psal.app.photo_jobs import PhotoJobs, fill_values
from psal.app.reading import read_file, read_json, whole_number
from psal.app.refusals import RefusedError
from psal.app.service import Service
from psal.app.sessions import Session
from psal.app.steps import Mark
from psal.editing.registry import EDITS, Edit
from psal.errors import UsageError

COUNTDOWN_SECONDS = 1.0


class PhotoRoutes:
    """Handlers of ``/photos``."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._jobs = PhotoJobs(service)

    def routes(self) -> list[Route]:
        one = "/photos/{id}"
        return [
            Route("/photos", self.open, methods=["POST"]),
            Route("/samples/{edit}", self.open_sample, methods=["POST"]),
            Route(one, self.state, methods=["GET"]),
            Route(f"{one}/close", self.close, methods=["POST"]),
            Route(f"{one}/events", self.events, methods=["GET"]),
            Route(f"{one}/tiles/{{layer}}/{{level:int}}/{{column:int}}/{{row:int}}", self.tile, methods=["GET"]),
            Route(f"{one}/marks", self.mark, methods=["POST"]),
            Route(f"{one}/mask", self.mask_file, methods=["POST"]),
            Route(f"{one}/mask", self.download_mask, methods=["GET"]),
            Route(f"{one}/guide", self.guide_file, methods=["POST"]),
            Route(f"{one}/fill", self.fill, methods=["POST"]),
            Route(f"{one}/variant", self.variant, methods=["POST"]),
            Route(f"{one}/edits/{{edit}}", self.edit, methods=["POST"]),
            Route(f"{one}/stop", self.stop, methods=["POST"]),
            Route(f"{one}/position", self.go_to, methods=["POST"]),
            Route(f"{one}/file", self.download, methods=["GET"]),
        ]

    async def open(self, request: Request) -> Response:
        """Open the photograph in the body. The photograph that it replaces is closed only if it can be opened."""
        session = self._service.welcome(request)
        folder = self._new_photo(session, request)
        try:
            name = await read_file(request, folder / "photo" / "file")
            opened = await self._opened(request, session, folder, name)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return self._service.greet(session, JSONResponse(await opened.state()))

    async def open_sample(self, request: Request) -> Response:
        """Open the sample photograph of an edit, with its mask marked if it has one."""
        edit = EDITS.get(request.path_params["edit"])
        if edit is None:
            raise RefusedError(404, "there is no such sample")
        session = self._service.welcome(request)
        folder = self._new_photo(session, request)
        try:
            (folder / "photo").mkdir()
            await self._write_sample(session, edit, "photo", folder / "photo" / "file")
            opened = await self._opened(request, session, folder, f"{edit.name}.png")
            if edit.partner == "mask":
                await self._write_sample(session, edit, "mask", folder / "mask.png")
                await self._mark_file(session, opened, "hole", folder / "mask.png", "mask.png")
                opened.document.saved = opened.document.last  # nobody's work yet
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return self._service.greet(session, JSONResponse(await opened.state()))

    async def _write_sample(self, session: Session, edit: Edit, role: str, path: Path) -> None:
        made = path.with_name("sample.png")
        await self._service.file(session, "write_sample", {"edit": edit.name, "role": role, "path": str(made)})
        made.rename(path)

    def _new_photo(self, session: Session, request: Request) -> Path:
        if not request.query_params.get("replaces"):
            session.check_photos()
        return session.new_folder()

    async def _opened(self, request: Request, session: Session, folder: Path, name: str) -> OpenDocument:
        arguments = {"path": str(folder / "photo" / "file"), "name": name, "folder": str(folder)}
        found = await self._service.file(session, "open_photo", arguments)
        profile = (folder / "profile").read_bytes() or None
        opened = OpenDocument(await run_in_threadpool(Document, folder, name, found["format"], profile))
        old = session.documents.pop(request.query_params.get("replaces", ""))
        if old is not None:
            old.close()
        session.documents.put(opened, opened.document.id)
        return opened

    async def state(self, request: Request) -> Response:
        return JSONResponse(await self._find(request)[1].state())

    async def close(self, request: Request) -> Response:
        session, opened = self._find(request)
        session.documents.pop(opened.document.id)
        opened.close()
        return JSONResponse({})

    async def events(self, request: Request) -> Response:
        """Stream of states: the present one, one at every change, and one a second while the time left is told."""
        session, opened = self._find(request)

        async def stream() -> AsyncIterator[str]:
            changed = opened.listen()
            try:
                with session.held():
                    while not self._service.closing.is_set():
                        changed.clear()
                        state = await opened.state()
                        yield f"data: {json.dumps(state)}\n\n"
                        counts_down = state["job"] is not None and state["job"]["left"] is not None
                        pause = COUNTDOWN_SECONDS if counts_down else self._service.timeouts.ping
                        while not await _is_set_within(pause, changed) and not counts_down:
                            yield ": still here\n\n"
            finally:
                opened.leave(changed)

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def tile(self, request: Request) -> Response:
        """A piece of the photograph, of the original or of a mask."""
        _, opened = self._find(request)
        at, document = request.path_params, opened.document
        layer, level = at["layer"], at["level"]
        if layer not in ("pixels", "original", *LAYERS) or level > tiles.MAX_LEVEL:
            raise RefusedError(404, "there is no such tile")
        canvas = document.canvas
        box = tiles.tile_box(level, at["column"], at["row"], canvas.size)
        if box is None:
            raise RefusedError(404, "there is no such tile")
        if layer in LAYERS:
            content = await run_in_threadpool(tiles.mask_tile, canvas.mask(layer), level, box)
            return Response(content, media_type="image/png") if content else Response(status_code=204)
        pixels = document.original if layer == "original" else canvas.pixels
        content, kind = await run_in_threadpool(tiles.picture_tile, pixels, canvas.size, level, box, document.profile)
        return Response(content, media_type=kind)

    async def mark(self, request: Request) -> Response:
        """Mark a shape; with ``fill``, also fill everything that is marked, as one step."""
        session, opened = self._find(request)
        values = await read_json(request)
        self._jobs.check_free(opened)
        fill_values(values)  # refused before anything is marked
        step = await run_in_threadpool(marking.mark, opened.document, values)
        opened.message = None
        if values.get("fill") is True and values.get("layer", "hole") == "hole" and step is not None:
            await self._jobs.start_fill(session, opened, values, step)
        return await self._answer(opened)

    async def mask_file(self, request: Request) -> Response:
        """Mark what the mask file in the body marks."""
        session, opened = self._find(request)
        layer = _layer(request.query_params.get("layer", "hole"))
        folder = session.new_folder()
        try:
            name = await read_file(request, folder / "file")
            step = await self._mark_file(session, opened, layer, folder / "file", name)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        opened.message = None if step else {"kind": "info", "text": f"{name} marks nothing new"}
        return await self._answer(opened)

    async def _mark_file(
        self, session: Session, opened: OpenDocument, layer: Layer, path: Path, name: str
    ) -> Mark | None:
        out, size = path.with_name("mask.npy"), list(opened.document.canvas.size)
        await self._service.file(session, "read_mask", {"path": str(path), "name": name, "size": size, "out": str(out)})
        self._jobs.check_free(opened)
        return await run_in_threadpool(marking.mark_from_file, opened.document, layer, np.load(out))

    async def download_mask(self, request: Request) -> Response:
        session, opened = self._find(request)
        out = opened.document.new_path().with_suffix(".png")
        mask = str(opened.document.canvas.folder / "hole.npy")
        await self._service.file(session, "export_mask", {"mask": mask, "out": str(out)})
        return _attachment(out, f"{Path(opened.document.name).stem}_mask.png")

    async def guide_file(self, request: Request) -> Response:
        """Let fills follow the rough fill in the body; an empty body lets them follow none."""
        session, opened = self._find(request)
        folder, document = session.new_folder(), opened.document
        try:
            name = await read_file(request, folder / "file")
            out: Path | None = None
            if (folder / "file").stat().st_size:
                out, size = document.new_path(), list(document.canvas.size)
                arguments = {"path": str(folder / "file"), "name": name, "size": size, "out": str(out)}
                await self._service.file(session, "read_guide", arguments)
            self._jobs.check_free(opened)
            document.set_guide(name, out)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return await self._answer(opened)

    async def fill(self, request: Request) -> Response:
        """Fill everything that is marked."""
        session, opened = self._find(request)
        await self._jobs.start_fill(session, opened, await read_json(request), None)
        return await self._answer(opened)

    async def variant(self, request: Request) -> Response:
        """Show another variant of the last fill, or compute one if no ``index`` is given."""
        session, opened = self._find(request)
        values = await read_json(request)
        if "index" in values:
            self._jobs.check_free(opened)
            index = whole_number(values["index"], "the variant", 0, MAX_VARIANTS)
            await run_in_threadpool(opened.document.choose, index)
        else:
            await self._jobs.start_variant(session, opened)
        return await self._answer(opened)

    async def edit(self, request: Request) -> Response:
        """Run an edit of the whole picture; the body is the reference, if the edit takes one."""
        session, opened = self._find(request)
        edit = EDITS.get(request.path_params["edit"])
        if edit is None or edit.name == "inpaint":
            raise RefusedError(404, "there is no such edit")
        await self._jobs.start_edit(session, opened, edit, request)
        return await self._answer(opened)

    async def stop(self, request: Request) -> Response:
        _, opened = self._find(request)
        if opened.job is not None:
            opened.job.stop()
        return await self._answer(opened)

    async def go_to(self, request: Request) -> Response:
        """Undo or redo to a position in the list of steps."""
        _, opened = self._find(request)
        position = whole_number((await read_json(request)).get("position"), "the position", 0, MAX_STEPS)
        self._jobs.check_free(opened)
        await run_in_threadpool(opened.document.go_to, position)
        opened.message = None
        return await self._answer(opened)

    async def download(self, request: Request) -> Response:
        """The result in the original's format and size, or in the ``format`` given."""
        session, opened = self._find(request)
        document = opened.document
        suffix = request.query_params.get("format")
        if suffix not in (None, "png", "jpg", "tif", "webp"):
            raise UsageError("the format must be png, jpg, tif or webp")
        state = document.last
        arguments = {
            "photo": str(document.file), "name": document.name, "pixels": str(document.canvas.folder / "pixels.npy"),
            "suffix": f".{suffix}" if suffix else None, "out": str(document.new_path().with_suffix("")),
        }  # fmt: skip
        path = Path((await self._service.file(session, "export", arguments))["path"])
        document.saved = state
        opened.notify()
        return _attachment(path, f"{Path(document.name).stem}_edited{path.suffix}")

    def _find(self, request: Request) -> tuple[Session, OpenDocument]:
        session = self._service.session(request)
        return session, session.documents.get(request.path_params["id"])

    async def _answer(self, opened: OpenDocument) -> Response:
        opened.notify()
        return JSONResponse(await opened.state())


async def _is_set_within(seconds: float, event: asyncio.Event) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True


def _layer(name: str) -> Layer:
    for layer in LAYERS:
        if layer == name:
            return layer
    raise UsageError(f"the layer must be one of {', '.join(LAYERS)}")


def _attachment(path: Path, name: str) -> Response:
    headers: dict[str, Any] = {"content-disposition": f"attachment; filename*=utf-8''{quote(name)}"}
    return FileResponse(path, headers=headers, background=BackgroundTask(path.unlink, missing_ok=True))
