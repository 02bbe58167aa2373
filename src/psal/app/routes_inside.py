"""Routes of the page *Look inside*: match two pictures, then look from a pixel."""

import shutil
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from psal.app.job_queue import Job
from psal.app.limits import INSIDE_SIDE
from psal.app.reading import number, read_file, read_json, seed_of, whole_number
from psal.app.refusals import RefusedError
from psal.app.service import Service, stopped_by_hanging_up
from psal.app.sessions import Session
from psal.errors import UsageError

MAX_NEIGHBORS, MAX_PATCH_SIZE, MAX_ITERATIONS = 10, 15, 20
SEEDINGS = ("tree", "random")
ROLES = ("photo", "reference")
FILES = {"query": "query.png", "key": "key.png", "figure": "figure.png", "table": "places.csv"}


class InsideRoutes:
    """Handlers of ``/matches``."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[Route]:
        one = "/matches/{id}"
        return [
            Route("/matches", self.open, methods=["POST"]),
            Route(f"{one}/pictures/{{role}}", self.picture, methods=["POST"]),
            Route(one, self.match, methods=["POST"]),
            Route(f"{one}/look", self.look, methods=["POST"]),
            Route(f"{one}/files/{{file}}", self.file, methods=["GET"]),
        ]

    async def open(self, request: Request) -> Response:
        """Begin; with ``sample``, with the two sample pictures."""
        session = self._service.welcome(request)
        folder = session.new_folder()
        if request.query_params.get("sample"):
            for role in ROLES:
                await self._service.write_sample(session, "reconstruct", role, folder / f"{role} file")
                (folder / f"{role} name").write_text(f"{role}.png")
        return self._service.greet(session, JSONResponse({"id": session.folders.put(folder)}))

    async def picture(self, request: Request) -> Response:
        """Keep the picture in the body as the photo or the reference."""
        _, folder = self._find(request)
        role = request.path_params["role"]
        if role not in ROLES:
            raise RefusedError(404, "there is no such picture")
        new = folder / "new file"
        new.unlink(missing_ok=True)
        name = await read_file(request, new)
        new.replace(folder / f"{role} file")
        (folder / f"{role} name").write_text(name)
        return JSONResponse({"name": name})

    async def match(self, request: Request) -> Response:
        """Match the pictures with the settings in the body."""
        session, folder = self._find(request)
        settings = _settings(await read_json(request))
        if not (folder / "photo file").exists():
            raise UsageError("choose a picture first")
        second = "reference" if (folder / "reference file").exists() else "photo"
        made = folder / "matches"
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir()
        arguments = {
            "photo": str(folder / "photo file"), "reference": str(folder / f"{second} file"), "folder": str(made),
            "names": [(folder / f"{role} name").read_text() for role in ("photo", second)],
        }  # fmt: skip
        job = Job("match")
        async with stopped_by_hanging_up(request, job):
            found = await self._service.edit(session, job, "match", arguments | settings)
        return JSONResponse({"height": found["size"][0], "width": found["size"][1]})

    async def look(self, request: Request) -> Response:
        """Look from the pixel in the body."""
        session, folder = self._find(request)
        values = await read_json(request)
        row, column = (whole_number(values.get(name), f"the {name}", 0, INSIDE_SIDE) for name in ("row", "column"))
        made = folder / "matches"
        if not (made / "about.json").exists():
            raise UsageError("match the pictures first")
        arguments = {"folder": str(made), "row": row, "column": column}
        return JSONResponse(await self._service.file(session, "look", arguments))

    async def file(self, request: Request) -> Response:
        """A picture or the table of the last look."""
        _, folder = self._find(request)
        name = FILES.get(request.path_params["file"])
        if name is None or not (path := Path(folder, "matches", name)).exists():
            raise RefusedError(404, "there is no such file")
        return FileResponse(path, filename=name, content_disposition_type="inline")

    def _find(self, request: Request) -> tuple[Session, Path]:
        session = self._service.session(request)
        return session, session.folders.get(request.path_params["id"])


def _settings(values: dict[str, Any]) -> dict[str, Any]:
    patch_size = whole_number(values.get("patch_size", 7), "the patch size", 1, MAX_PATCH_SIZE)
    if patch_size % 2 == 0:
        raise UsageError("the patch size must be odd")
    init = values.get("init", "tree")
    if init not in SEEDINGS:
        raise UsageError(f"the seeding must be one of {', '.join(SEEDINGS)}")
    temperature = number(values.get("temperature", 1.0), "the temperature")
    if not 1e-6 <= temperature <= 1e6:
        raise UsageError("the temperature must be from 0.000001 to 1000000")
    return {
        "neighbors": whole_number(values.get("neighbors", 3), "the number of neighbors", 1, MAX_NEIGHBORS),
        "patch_size": patch_size,
        "iterations": whole_number(values.get("iterations", -1), "the iterations", -1, MAX_ITERATIONS),
        "init": init, "aggregate": values.get("aggregate") is True, "temperature": temperature,
        "seed": seed_of(values),
    }  # fmt: skip
