"""Routes of a photograph that change it: mark, fill, edit, undo."""

import shutil
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from psal.app import marking
from psal.app.limits import MAX_STEPS, MAX_VARIANTS
from psal.app.open_document import OpenDocument
from psal.app.photo_jobs import PhotoJobs, check_free, fill_values, mark_file
from psal.app.reading import read_file, read_json, whole_number
from psal.app.refusals import RefusedError
from psal.app.service import Service
from psal.editing.registry import EDITS


class EditRoutes:
    """Handlers of ``/photos`` that change the photograph, or what is marked on it."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._jobs = PhotoJobs(service)

    def routes(self) -> list[Route]:
        actions = {
            "marks": self.mark, "mask": self.mask_file, "guide": self.guide_file, "fill": self.fill,
            "variant": self.variant, "edits/{edit}": self.edit, "stop": self.stop, "position": self.go_to,
        }  # fmt: skip
        return [Route(f"/photos/{{id}}/{path}", action, methods=["POST"]) for path, action in actions.items()]

    async def mark(self, request: Request) -> Response:
        """Mark a shape; with ``fill``, also fill everything that is marked, as one step."""
        session, opened = self._service.photo(request)
        values = await read_json(request)
        check_free(opened)
        fill_values(values)  # refused before anything is marked
        step = await run_in_threadpool(marking.mark, opened.document, values)
        opened.message = None
        if values.get("fill") is True and values.get("layer", "hole") == "hole" and step is not None:
            await self._jobs.start_fill(session, opened, values, step)
        return await self._answer(opened)

    async def mask_file(self, request: Request) -> Response:
        """Mark what the mask file in the body marks."""
        session, opened = self._service.photo(request)
        layer = marking.layer_of(request.query_params.get("layer", "hole"))
        folder = session.new_folder()
        try:
            name = await read_file(request, folder / "file")
            step = await mark_file(self._service, session, opened, layer, folder / "file", name)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        opened.message = None if step else {"kind": "info", "text": f"{name} marks nothing new"}
        return await self._answer(opened)

    async def guide_file(self, request: Request) -> Response:
        """Let fills follow the rough fill in the body; an empty body lets them follow none."""
        session, opened = self._service.photo(request)
        folder, document = session.new_folder(), opened.document
        try:
            name = await read_file(request, folder / "file")
            out: Path | None = None
            if (folder / "file").stat().st_size:
                out, size = document.new_path(), list(document.canvas.size)
                arguments = {"path": str(folder / "file"), "name": name, "size": size, "out": str(out)}
                await self._service.file(session, "read_guide", arguments)
            check_free(opened)
            document.set_guide(name, out)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return await self._answer(opened)

    async def fill(self, request: Request) -> Response:
        """Fill everything that is marked."""
        session, opened = self._service.photo(request)
        await self._jobs.start_fill(session, opened, await read_json(request), None)
        return await self._answer(opened)

    async def variant(self, request: Request) -> Response:
        """Show another variant of the last fill, or compute one if no ``index`` is given."""
        session, opened = self._service.photo(request)
        values = await read_json(request)
        if "index" in values:
            check_free(opened)
            index = whole_number(values["index"], "the variant", 0, MAX_VARIANTS)
            await run_in_threadpool(opened.document.choose, index)
        else:
            await self._jobs.start_variant(session, opened)
        return await self._answer(opened)

    async def edit(self, request: Request) -> Response:
        """Run an edit of the whole picture; the body is the reference, if the edit takes one."""
        session, opened = self._service.photo(request)
        edit = EDITS.get(request.path_params["edit"])
        if edit is None or edit.name == "inpaint":
            raise RefusedError(404, "there is no such edit")
        await self._jobs.start_edit(session, opened, edit, request)
        return await self._answer(opened)

    async def stop(self, request: Request) -> Response:
        _, opened = self._service.photo(request)
        if opened.job is not None:
            opened.job.stop()
        return await self._answer(opened)

    async def go_to(self, request: Request) -> Response:
        """Undo or redo to a position in the list of steps."""
        _, opened = self._service.photo(request)
        position = whole_number((await read_json(request)).get("position"), "the position", 0, MAX_STEPS)
        check_free(opened)
        await run_in_threadpool(opened.document.go_to, position)
        opened.message = None
        return await self._answer(opened)

    async def _answer(self, opened: OpenDocument) -> Response:
        opened.notify()
        return JSONResponse(await opened.state())
