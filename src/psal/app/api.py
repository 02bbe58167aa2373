"""The HTTP API: a picture in, the edited picture out, for programs."""

import contextlib
import secrets
import shutil
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from psal.app.job_queue import Job
from psal.app.limits import MAX_FILE_BYTES
from psal.app.middleware import TOO_LARGE
from psal.app.openapi import describe_api
from psal.app.reading import offered_options, options_of, suffix_of
from psal.app.refusals import RefusedError
from psal.app.service import Service, attachment, stopped_by_hanging_up
from psal.app.sessions import plain_name
from psal.editing.registry import EDITS, Edit
from psal.errors import UsageError

MAX_FILES, MAX_FIELDS = 4, 16
NO_FORM = "send the pictures as multipart/form-data"


class ApiRoutes:
    """Handlers of ``/api``: one for each edit, and their description."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._folder = service.root / "api"

    def routes(self) -> list[Route]:
        return [
            Route("/api/openapi.json", self.describe, methods=["GET"]),
            *(Route(f"/api/{edit}", self.edit, methods=["POST"], name=edit) for edit in EDITS),
        ]

    async def describe(self, request: Request) -> Response:
        return JSONResponse(describe_api())

    async def edit(self, request: Request) -> Response:
        """Run an edit on the form's pictures; the job ends when the client hangs up."""
        edit = EDITS[request.url.path.removeprefix("/api/")]
        async with _form(request) as form:
            names = {"photo", "format", "seed", *(option.name for option in offered_options(edit))}
            names |= {edit.partner} if edit.partner else set()
            names |= {companion.flag for companion in edit.companions}
            for name in form:
                if name not in names:
                    raise RefusedError(422, f"{edit.name} takes no field of that name: see /api")
            options = options_of(edit, _texts(form))
            suffix = suffix_of(_texts(form))
            folder = self._new_folder()
            try:
                arguments = await self._keep(form, edit, folder)
                arguments |= {
                    "edit": edit.name, "options": options, "suffix": suffix,
                    "out": str(folder / "result"),
                }  # fmt: skip
                job = Job(edit.name)
                async with stopped_by_hanging_up(request, job):
                    found = await self._service.edit(self._visitor(request), job, "edit_file", arguments)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
        path = Path(found["path"])
        name = f"{Path(arguments['name']).stem}_{edit.name}{path.suffix}"
        return attachment(path, name, partial(shutil.rmtree, folder, ignore_errors=True))

    async def _keep(self, form: FormData, edit: Edit, folder: Path) -> dict[str, Any]:
        """Write the form's files; returns the arguments of the task that name them."""
        photo = await self._keep_one(form, edit, "photo", folder)
        partner = await self._keep_one(form, edit, edit.partner, folder) if edit.partner else [None, ""]
        companions = {
            companion.name: await self._keep_one(form, edit, companion.flag, folder)
            for companion in edit.companions
            if companion.flag in form
        }
        return {
            "photo": photo[0], "name": photo[1], "partner": partner[0], "partner_name": partner[1],
            "companions": companions,
        }  # fmt: skip

    async def _keep_one(self, form: FormData, edit: Edit, field: str, folder: Path) -> list[str]:
        file = form.get(field)
        if not isinstance(file, UploadFile) or len(form.getlist(field)) != 1:
            raise UsageError(f"{edit.name} needs one file in the field {field}")
        if (file.size or 0) > MAX_FILE_BYTES:
            raise RefusedError(413, TOO_LARGE)
        await run_in_threadpool(_copy, file, folder / field)
        return [str(folder / field), plain_name(file.filename or "")]

    def _new_folder(self) -> Path:
        folder = self._folder / secrets.token_hex(8)
        folder.mkdir(parents=True, mode=0o700)
        return folder

    def _visitor(self, request: Request) -> str:
        """Name under which a program waits in the queue: its address."""
        return f"api {request.client.host if request.client else ''}"


@contextlib.asynccontextmanager
async def _form(request: Request) -> AsyncIterator[FormData]:
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise RefusedError(415, NO_FORM)
    try:
        form = await request.form(max_files=MAX_FILES, max_fields=MAX_FIELDS)
    except (MultiPartException, HTTPException, KeyError, ValueError):
        raise RefusedError(400, NO_FORM) from None
    try:
        yield form
    finally:
        await form.close()


def _texts(form: FormData) -> dict[str, str]:
    return {name: value for name, value in form.items() if isinstance(value, str)}


def _copy(file: UploadFile, path: Path) -> None:
    with path.open("xb") as kept:
        shutil.copyfileobj(file.file, kept)
