"""Reading requests: JSON, numbers, shapes and uploaded files, each checked before it is used."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from psal.app.limits import MAX_FILE_BYTES, MAX_JSON_BYTES, MAX_POINTS
from psal.app.middleware import TOO_LARGE
from psal.app.refusals import RefusedError
from psal.app.sessions import plain_name
from psal.editing.registry import Edit, Option
from psal.errors import UsageError

NOT_UNDERSTOOD = "the request is not understood"
SEEDS = -(2**63), 2**63 - 1
MAX_LENGTH = 20_000  # pixels
FORMATS = ("png", "jpg", "tif", "webp")  # that results may be asked for in
SWITCH = {"true": True, "1": True, "false": False, "0": False}
FAR = 1e6  # pixels; coordinates beyond are no picture's


async def read_json(request: Request) -> dict[str, Any]:
    """Body of a request as a JSON object; an empty body is an empty object.

    Raises:
        RefusedError: if it is none, or too long.
    """
    content = bytearray()
    async for piece in request.stream():
        content += piece
        if len(content) > MAX_JSON_BYTES:
            raise RefusedError(413, "the request is too long")
    try:
        found = json.loads(content or b"{}", parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise RefusedError(400, NOT_UNDERSTOOD) from None
    if not isinstance(found, dict):
        raise RefusedError(400, NOT_UNDERSTOOD)
    return found


def _no_constant(name: str) -> float:
    raise ValueError(name)  # NaN and Infinity are no JSON


async def read_file(request: Request, path: Path) -> str:
    """Write the body of a request to a file; returns the file's name on the user's computer.

    Raises:
        RefusedError: if it is too large.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    size = 0
    with path.open("xb") as file:
        async for piece in request.stream():
            size += len(piece)
            if size > MAX_FILE_BYTES:
                raise RefusedError(413, TOO_LARGE)
            await run_in_threadpool(file.write, piece)
    return plain_name(request.query_params.get("name", ""))


def whole_number(value: Any, what: str, least: int, most: int) -> int:
    """Check a whole number.

    Raises:
        UsageError: if it is none, or not within the limits.
    """
    if isinstance(value, str):
        value = _parsed(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value != int(value):
        raise UsageError(f"{what} must be a whole number")
    if not least <= value <= most:
        raise UsageError(
            f"{what} must fit into 64 bits" if (least, most) == SEEDS else f"{what} must be from {least} to {most}"
        )
    return int(value)


def number(value: Any, what: str) -> float:
    """Check a finite number.

    Raises:
        UsageError: if it is none.
    """
    if isinstance(value, str):
        value = _parsed(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 1e300:
        raise UsageError(f"{what} must be a number")
    return float(value)


def _parsed(text: str) -> int | float | None:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


def seed_of(values: Any) -> int:
    """The seed of a request; 0 by default.

    Raises:
        UsageError: if it is no whole number of 64 bits.
    """
    return whole_number(values.get("seed", 0), "the seed", *SEEDS)


def offered_options(edit: Edit) -> list[Option]:
    """Options that a request may set.

    Paths are those of the server, so no request may name one; without its weights, a network cannot be chosen either.
    """
    if any(option.is_path for option in edit.options):
        return [option for option in edit.options if not option.is_path and not option.choices]
    return list(edit.options)


def options_of(edit: Edit, values: Any) -> dict[str, Any]:
    """Keyword arguments of an edit, the seed among them; the defaults stand for what is not given.

    Raises:
        UsageError: if one is not as the edit takes it.
    """
    found: dict[str, Any] = {"seed": seed_of(values)}
    for option in offered_options(edit):
        found[option.name] = _option(option, values.get(option.name, option.default))
    return found


def _option(option: Option, given: Any) -> Any:
    if option.choices:
        if given not in option.choices:
            raise UsageError(f"{option.name} must be one of {', '.join(option.choices)}")
        return given
    if isinstance(option.default, bool):
        if str(given).lower() not in SWITCH:
            raise UsageError(f"{option.name} must be true or false")
        return SWITCH[str(given).lower()]
    if isinstance(option.default, int):
        return whole_number(given, option.name, int(option.minimum or 0), int(option.maximum or MAX_LENGTH))
    value = number(given, option.name)
    if option.minimum is not None and value <= option.minimum:
        raise UsageError(f"{option.name} must be above {option.minimum:g}")
    if option.maximum is not None and value > option.maximum:
        raise UsageError(f"{option.name} must be at most {option.maximum:g}")
    return value


def suffix_of(values: Any) -> str | None:
    """Suffix of the format that a request asks for; None for the photograph's own.

    Raises:
        UsageError: if it is not one of FORMATS.
    """
    name = values.get("format")
    if name is not None and name not in FORMATS:
        raise UsageError(f"the format must be one of {', '.join(FORMATS)}")
    return f".{name}" if name else None


def points_of(value: Any, least: int) -> NDArray[np.float64]:
    """Points ``[N, 2]`` of a shape, x and y.

    Raises:
        UsageError: if it is no list of points.
    """
    if not isinstance(value, list) or not least <= len(value) <= MAX_POINTS:
        raise UsageError(f"a shape must have {least} to {MAX_POINTS} points")
    for point in value:
        if not isinstance(point, list) or len(point) != 2 or not all(_is_coordinate(x) for x in point):
            raise UsageError("a point must be two numbers, x and y")
    return np.array(value, np.float64)


def _is_coordinate(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= FAR
