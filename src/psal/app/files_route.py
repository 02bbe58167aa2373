"""Files of sessions, in and out."""

import mimetypes
import shutil
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from psal.app.limits import MAX_FILE_BYTES, MEGA
from psal.app.sessions import Session, plain_name

SHOWN = ("image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp")  # everything else is only downloaded
MAX_FORM_BYTES = 4  # files


async def receive_upload(request: Request, session: Session) -> Response:
    """Keep a form's files in the session's folder; the answer is a list of their paths."""
    try:
        async with request.form(max_files=MAX_FORM_BYTES, max_fields=MAX_FORM_BYTES) as form:
            files = [file for file in form.getlist("files") if isinstance(file, UploadFile)]
            if any((file.size or 0) > MAX_FILE_BYTES for file in files):
                return Response(f"a file may have at most {MAX_FILE_BYTES / MEGA:.0f} MB: make it smaller", 413)
            return JSONResponse([await run_in_threadpool(_keep, file, session) for file in files])
    except (MultiPartException, HTTPException, KeyError, ValueError):
        return Response("the upload is not understood", 400)


def answer_file(path: str, session: Session) -> Response:
    """One of the session's files."""
    if not session.owns(path) or not Path(path).is_file():
        return JSONResponse({"detail": "there is no such file of yours"}, 403)
    kind = mimetypes.guess_type(path)[0]
    if kind in SHOWN:
        return FileResponse(path, media_type=kind, filename=Path(path).name, content_disposition_type="inline")
    return FileResponse(path, media_type="application/octet-stream", filename=Path(path).name)


def _keep(file: UploadFile, session: Session) -> str:
    path = session.new_folder() / plain_name(file.filename or "")
    with path.open("xb") as kept:
        shutil.copyfileobj(file.file, kept)
    return str(path)
