"""Routes of a photograph that read: open it, look at it, hear of changes, download."""

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from psal.app import tiles
from psal.app.canvas import LAYERS
from psal.app.document import Document
from psal.app.open_document import OpenDocument
from psal.app.photo_jobs import mark_file
from psal.app.reading import read_file, suffix_of
from psal.app.refusals import RefusedError
from psal.app.service import Service, attachment
from psal.app.sessions import Session
from psal.editing.registry import EDITS

COUNTDOWN_SECONDS = 1.0


class PhotoRoutes:
    """Handlers of ``/photos`` that leave the photograph as it is."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[Route]:
        one = "/photos/{id}"
        return [
            Route("/photos", self.open, methods=["POST"]),
            Route("/samples/{edit}", self.open_sample, methods=["POST"]),
            Route(one, self.state, methods=["GET"]),
            Route(f"{one}/close", self.close, methods=["POST"]),
            Route(f"{one}/events", self.events, methods=["GET"]),
            Route(f"{one}/tiles/{{layer}}/{{level:int}}/{{column:int}}/{{row:int}}", self.tile, methods=["GET"]),
            Route(f"{one}/mask", self.download_mask, methods=["GET"]),
            Route(f"{one}/file", self.download, methods=["GET"]),
        ]

    async def open(self, request: Request) -> Response:
        """Open the photograph in the body. The photograph that it replaces is closed only if it can be opened."""
        session = self._service.welcome(request)
        with _new_photo(session, request) as folder:
            name = await read_file(request, folder / "photo" / "file")
            opened = await self._opened(request, session, folder, name)
        return self._service.greet(session, JSONResponse(await opened.state()))

    async def open_sample(self, request: Request) -> Response:
        """Open the sample photograph of an edit, with its mask marked if it has one."""
        edit = EDITS.get(request.path_params["edit"])
        if edit is None:
            raise RefusedError(404, "there is no such sample")
        session = self._service.welcome(request)
        with _new_photo(session, request) as folder:
            (folder / "photo").mkdir()
            await self._service.write_sample(session, edit.name, "photo", folder / "photo" / "file")
            opened = await self._opened(request, session, folder, f"{edit.name}.png")
            if edit.partner == "mask":
                await self._service.write_sample(session, edit.name, "mask", folder / "mask.png")
                await mark_file(self._service, session, opened, "hole", folder / "mask.png", "mask.png")
                opened.document.saved = opened.document.last  # nobody's work yet
        return self._service.greet(session, JSONResponse(await opened.state()))

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
        return JSONResponse(await self._service.photo(request)[1].state())

    async def close(self, request: Request) -> Response:
        session, opened = self._service.photo(request)
        session.documents.pop(opened.document.id)
        opened.close()
        return JSONResponse({})

    async def events(self, request: Request) -> Response:
        """Stream of states: the present one, one at every change, and one a second while the time left is told."""
        session, opened = self._service.photo(request)

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
        _, opened = self._service.photo(request)
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

    async def download_mask(self, request: Request) -> Response:
        session, opened = self._service.photo(request)
        out = opened.document.new_path().with_suffix(".png")
        mask = str(opened.document.canvas.folder / "hole.npy")
        await self._service.file(session, "export_mask", {"mask": mask, "out": str(out)})
        return attachment(out, f"{Path(opened.document.name).stem}_mask.png", out.unlink)

    async def download(self, request: Request) -> Response:
        """The result in the original's format and size, or in the ``format`` given."""
        session, opened = self._service.photo(request)
        document = opened.document
        suffix = suffix_of(request.query_params)
        state = document.last
        arguments = {
            "photo": str(document.file), "name": document.name, "pixels": str(document.canvas.folder / "pixels.npy"),
            "suffix": suffix, "out": str(document.new_path().with_suffix("")),
        }  # fmt: skip
        path = Path((await self._service.file(session, "export", arguments))["path"])
        document.saved = state
        opened.notify()
        return attachment(path, f"{Path(document.name).stem}_edited{path.suffix}", path.unlink)


@contextlib.contextmanager
def _new_photo(session: Session, request: Request) -> Iterator[Path]:
    """Make a folder for a photograph; remove it if the photograph cannot be opened."""
    if not request.query_params.get("replaces"):
        session.check_photos()
    folder = session.new_folder()
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


async def _is_set_within(seconds: float, event: asyncio.Event) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True
