"""The server's routes put together: pages and their files, photographs, folders, matches, the API."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from psal.app.api import ApiRoutes
from psal.app.middleware import Middleware
from psal.app.refusals import RefusedError, handlers
from psal.app.routes_edit import EditRoutes
from psal.app.routes_folder import FolderRoutes
from psal.app.routes_inside import InsideRoutes
from psal.app.routes_photo import PhotoRoutes
from psal.app.service import Service

ASSETS = Path(__file__).parent / "assets"
PAGES = {"/": "index.html", "/inside": "inside.html", "/api": "api.html"}
MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def build_application(service: Service) -> ASGIApp:
    """The whole server as an ASGI application.

    Args:
        service: what the routes share.
    """
    files = {f"/assets/{path.name}": path for path in ASSETS.iterdir() if path.suffix in MEDIA_TYPES}

    async def page(request: Request) -> Response:
        path = request.url.path
        found = files.get(path) or (ASSETS / PAGES[path] if path in PAGES else None)
        if found is None:
            raise RefusedError(404, "there is nothing at this address")
        # Asked for again each time, so that a page and its scripts are always of one version.
        return FileResponse(found, media_type=MEDIA_TYPES[found.suffix], headers={"cache-control": "no-cache"})

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        sweeping = asyncio.create_task(_sweep(service))
        yield
        sweeping.cancel()

    routes = [
        *(Route(path, page, methods=["GET"]) for path in PAGES),
        Route("/assets/{name}", page, methods=["GET"]),
        *PhotoRoutes(service).routes(),
        *EditRoutes(service).routes(),
        *FolderRoutes(service).routes(),
        *InsideRoutes(service).routes(),
        *ApiRoutes(service).routes(),
    ]
    inner = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers())
    inner.router.redirect_slashes = False
    return Middleware(inner, service.access, service.timeouts)


async def _sweep(service: Service) -> None:
    while True:
        await asyncio.sleep(service.timeouts.sweep)
        await asyncio.to_thread(service.sessions.sweep)
