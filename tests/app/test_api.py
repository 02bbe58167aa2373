"""The HTTP API: its results, its refusals, and its description."""

from typing import Any

import numpy as np
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from numpy.typing import NDArray
from schemathesis.specs.openapi.checks import positive_data_acceptance

import psal
from app.client import Client, picture, png
from app.conftest import Server
from psal.editing.registry import EDITS


def test_every_edit_answers_as_python_does(client: Client, photo: NDArray[Any]) -> None:
    hole = np.zeros(photo.shape[:2], np.uint8)
    hole[30:50, 40:70] = 255
    reference = np.ascontiguousarray(photo[::-1])
    gray = photo.mean(2).round().astype(np.uint8)
    expected: dict[str, tuple[dict[str, Any], dict[str, Any], Any]] = {
        "inpaint": ({"photo": photo, "mask": hole}, {"seed": 4}, psal.inpaint(photo, hole, seed=4)),
        "outpaint": ({"photo": photo}, {"left": 20, "bottom": 7}, psal.outpaint(photo, left=20, bottom=7, seed=0)),
        "colorize": ({"photo": gray, "reference": photo}, {}, psal.colorize(gray, photo, seed=0)),
        "reconstruct": ({"photo": photo, "reference": reference}, {}, psal.reconstruct(photo, reference, seed=0)),
        "upscale": ({"photo": photo}, {"scale": 1.5, "format": "tif"}, psal.upscale(photo, 1.5, seed=0)),
    }
    assert set(expected) == set(EDITS)
    for edit, (pictures, values, result) in expected.items():
        files = {name: (f"{name} 1.png", png(pixels)) for name, pixels in pictures.items()}
        answer = client.http.post(
            f"/api/{edit}", files=files, data={name: str(value) for name, value in values.items()}
        )
        assert answer.status_code == 200, answer.text
        np.testing.assert_array_equal(picture(answer.content), result)
        kind = values.get("format", "png")
        assert answer.headers["content-type"] == f"image/{'tiff' if kind == 'tif' else kind}"
        assert f"photo%201_{edit}.{kind}" in answer.headers["content-disposition"]


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        ({"json": {}}, 415, "multipart/form-data"),
        ({"content": b"x", "headers": {"content-type": "multipart/form-data"}}, 400, "multipart/form-data"),
        ({"files": {"photo": ("a.png", b"Dear all")}}, 422, "needs one file in the field mask"),
        ({"files": {"photo": ("a.png", b"Dear all"), "mask": ("m.png", b"x")}}, 422, "a.png is damaged"),
        ({"files": {"photo": ("a.png", b""), "mask": ("m.png", b"x")}, "data": {"seed": "x"}}, 422, "seed must be"),
        ({"files": {"photo": ("a.png", b"")}, "data": {"faces": "1"}}, 422, "takes no field of that name"),
        ({"files": {"photo": ("a.png", b"")}, "data": {"format": "exe"}}, 422, "format must be one of"),
        ({"data": {"photo": "text", "mask": "text"}, "files": {"x": b""}}, 422, "takes no field"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_sentence(
    options: dict[str, Any], status: int, words: str, client: Client, server: Server
) -> None:
    answer = client.http.post("/api/inpaint", **options)
    assert (answer.status_code, words in answer.json()["error"]) == (status, True), answer.text
    assert not list((server.folder() / "api").glob("*"))


def test_a_source_and_a_guide_are_passed_on_but_no_file_of_the_server(client: Client, photo: NDArray[Any]) -> None:
    hole, source = np.zeros((2, *photo.shape[:2]), np.uint8)
    hole[30:50, 40:70], source[:, 80:] = 255, 255
    guide = np.ascontiguousarray(photo[:, ::-1])
    pictures = {"photo": photo, "mask": hole, "source": source, "guide": guide}
    files = {name: (f"{name}.png", png(pixels)) for name, pixels in pictures.items()}
    answer = client.http.post("/api/inpaint", files=files, data={"grow": "2", "invert": "false"})
    expected = psal.inpaint(photo, hole, source_mask=source, guide=guide, grow=2, seed=0)
    np.testing.assert_array_equal(picture(answer.content), expected)
    for field in ("weights", "model", "attention"):
        for edit in ("inpaint", "upscale"):
            refused = client.http.post(f"/api/{edit}", files=files, data={field: "/etc/passwd"})
            assert refused.status_code == 422
            assert "takes no field of that name" in refused.text


def test_a_mask_without_white_is_refused(client: Client, photo: NDArray[Any]) -> None:
    files = {"photo": ("a.png", png(photo)), "mask": ("m.png", png(np.zeros((128, 160), np.uint8)))}
    answer = client.http.post("/api/inpaint", files=files)
    assert (answer.status_code, answer.json()["error"]) == (422, "m.png has no white in it: nothing is marked")


def test_the_description_holds_for_whatever_schemathesis_sends(server: Server) -> None:
    schema: Any = schemathesis.openapi.from_url(f"{server.address}api/openapi.json")

    for operation in schema.get_all_operations():
        settings(max_examples=12, deadline=None, database=None, suppress_health_check=list(HealthCheck))(
            _checked(operation.ok(), server)
        )()


def _checked(operation: Any, server: Server) -> Any:
    @given(case=operation.as_strategy())
    def check(case: Any) -> None:
        # What a file must be for an edit, a schema cannot say.
        case.call_and_validate(
            base_url=server.address.rstrip("/"), timeout=60, excluded_checks=[positive_data_acceptance]
        )

    return check
