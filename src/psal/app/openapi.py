"""Description of the HTTP API by the OpenAPI standard, read from the registry of edits."""

from typing import Any

from psal.app.limits import MAX_FILE_BYTES, MEGA
from psal.app.reading import MAX_LENGTH, offered_options
from psal.editing.registry import EDITS, Edit, Option
from psal.version import __version__

FORMATS = ("png", "jpg", "tif", "webp")
MEDIA_TYPES = ("image/png", "image/jpeg", "image/tiff", "image/webp", "image/bmp")
FILE = {"type": "string", "format": "binary"}
PARTNERS = {
    "mask": "a picture of the same size, white in the hole",
    "reference": "a picture to take colors or pixels from",
}
REFUSALS = {
    "400": "the form is not understood",
    "401": "the token is missing, if the server needs one",
    "403": "the request comes from another page",
    "408": "the request did not arrive in time",
    "409": "the edit was stopped",
    "413": f"a file has more than {MAX_FILE_BYTES // MEGA} MB",
    "415": "the request is no form",
    "421": "the server is not called by that name",
    "422": "a picture or a value cannot be used; the sentence says why",
    "429": "too many edits wait",
    "507": "the server has no room",
}


def describe_api() -> dict[str, Any]:
    """The description, as JSON has it."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "psal",
            "version": __version__,
            "description": "Edits of photographs: a picture in, the edited picture out.",
        },
        "paths": {f"/api/{edit.name}": {"post": _operation(edit)} for edit in EDITS.values()},
        "components": {
            "schemas": {
                "Refusal": {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
            }
        },
    }


def _operation(edit: Edit) -> dict[str, Any]:
    fields: dict[str, Any] = {"photo": FILE | {"description": "the picture to edit"}}
    if edit.partner:
        fields[edit.partner] = FILE | {"description": PARTNERS[edit.partner]}
    required = list(fields)
    fields |= {companion.flag: FILE | {"description": companion.help} for companion in edit.companions}
    fields |= {option.name: _schema(option) for option in offered_options(edit)}
    fields["seed"] = {
        "type": "integer", "default": 0, "minimum": -(2**63), "maximum": 2**63 - 1,
        "description": "another one gives another result",
    }  # fmt: skip
    fields["format"] = {"type": "string", "enum": list(FORMATS), "description": "of the result; the photo's by default"}
    form = {"type": "object", "required": required, "properties": fields, "additionalProperties": False}
    refusal = {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}
    return {
        "operationId": edit.name,
        "summary": edit.summary,
        "requestBody": {"required": True, "content": {"multipart/form-data": {"schema": form}}},
        "responses": {
            "200": {
                "description": "the edited picture, in the photo's format unless another one was asked for",
                "content": {kind: {"schema": FILE} for kind in MEDIA_TYPES},
            },
            **{status: {"description": words, "content": refusal} for status, words in REFUSALS.items()},
        },
    }


def _schema(option: Option) -> dict[str, Any]:
    help_line = option.help.replace("pixels or percent", "pixels")  # percent is for the command line
    about: dict[str, Any] = {"description": help_line, "default": option.default}
    if option.choices:
        return about | {"type": "string", "enum": list(option.choices)}
    if isinstance(option.default, bool):
        return about | {"type": "boolean"}
    if isinstance(option.default, int):
        return about | {"type": "integer", "minimum": option.minimum or 0, "maximum": option.maximum or MAX_LENGTH}
    limits = {"exclusiveMinimum": option.minimum, "maximum": option.maximum}
    return about | {"type": "number"} | {name: value for name, value in limits.items() if value is not None}
