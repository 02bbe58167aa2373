"""A folder of photographs with one mask: each is filled in turn, and all come back in one zip."""

import secrets
import shutil
import zipfile
from pathlib import Path

from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from psal.app.job_queue import Job
from psal.app.reading import read_file, seed_of
from psal.app.service import Service, stopped_by_hanging_up
from psal.errors import UsageError

MASK, RESULTS = "mask", "results"


class FolderRoutes:
    """Handlers of ``/folders``. The page sends one photograph after the other, so that its progress is true."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[Route]:
        return [
            Route("/folders", self.open, methods=["POST"]),
            Route("/folders/{id}/photos", self.fill, methods=["POST"]),
            Route("/folders/{id}/zip", self.download, methods=["GET"]),
            Route("/folders/{id}/close", self.close, methods=["POST"]),
        ]

    async def open(self, request: Request) -> Response:
        """Begin a folder with the mask in the body."""
        session = self._service.welcome(request)
        folder = session.new_folder()
        name = await read_file(request, folder / MASK)
        (folder / RESULTS).mkdir()
        (folder / "mask name").write_text(name)
        return self._service.greet(session, JSONResponse({"id": session.folders.put(folder)}))

    async def fill(self, request: Request) -> Response:
        """Fill the photograph in the body, and keep the result; hanging up stops it."""
        session = self._service.session(request)
        folder = session.folders.get(request.path_params["id"])
        session.check_room()
        seed = seed_of(request.query_params)
        photo = folder / secrets.token_hex(8)
        job = Job("inpaint")
        try:
            name = await read_file(request, photo)
            arguments = {
                "edit": "inpaint", "photo": str(photo), "name": name, "partner": str(folder / MASK),
                "partner_name": (folder / "mask name").read_text(), "companions": {},
                "options": {"seed": seed}, "suffix": None,
                "out": str(_free_name(folder / RESULTS, name)),
            }  # fmt: skip
            async with stopped_by_hanging_up(request, job):
                found = await self._service.edit(session, job, "edit_file", arguments)
        finally:
            photo.unlink(missing_ok=True)
        return JSONResponse({"name": Path(found["path"]).name})

    async def download(self, request: Request) -> Response:
        """All results as a zip."""
        folder = self._service.session(request).folders.get(request.path_params["id"])
        path = folder / f"{secrets.token_hex(8)}.zip"
        if not await run_in_threadpool(_zip, folder / RESULTS, path):
            raise UsageError("no photograph has been filled yet")
        return FileResponse(
            path, media_type="application/zip", filename="psal.zip",
            background=BackgroundTask(path.unlink, missing_ok=True),
        )  # fmt: skip

    async def close(self, request: Request) -> Response:
        """Remove the folder."""
        session = self._service.session(request)
        folder = session.folders.pop(request.path_params["id"])
        if folder is not None:
            await run_in_threadpool(shutil.rmtree, folder, ignore_errors=True)
        return JSONResponse({})


def _free_name(folder: Path, name: str) -> Path:
    """Path without a suffix that no result has yet."""
    stem, taken = Path(name).stem, {path.stem for path in folder.iterdir()}
    number, free = 2, stem
    while free in taken:
        free, number = f"{stem} {number}", number + 1
    return folder / free


def _zip(folder: Path, path: Path) -> int:
    """Pack all files of a folder, which are compressed already; returns how many."""
    files = sorted(folder.iterdir())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as packed:
        for file in files:
            packed.write(file, file.name)
    return len(files)
