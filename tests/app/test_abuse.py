"""What the server does with files and requests that nobody should send."""

import contextlib
import http.client
import json
import resource
import socket
import struct
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

from app.client import Client, picture, png
from app.conftest import COMMAND, Server, running, with_timeouts
from psal.app.limits import MAX_FILE_BYTES, MAX_JSON_BYTES, MAX_PHOTOS

SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def png_of_zeros(width: int, height: int) -> bytes:
    """A small file that is a huge black picture."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(1 + (width + 7) // 8)) for _ in range(height)) + packer.flush()
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("letter.png", b"Dear all", "is damaged, or not a picture: give a PNG"),
        ("drawing.svg", SVG, "is damaged, or not a picture: give a PNG"),
        ("bomb.png", png_of_zeros(30_000, 30_000), "has 900 megapixels, but at most 40 can be used"),
        ("wide.png", png_of_zeros(2**31 - 1, 1)[:60], "has 2147 megapixels, but at most 40 can be used"),
        ("empty.jpg", b"", "is empty"),
    ],
    ids=["text", "svg", "bomb", "header", "empty"],
)
def test_a_bad_file_gets_a_sentence(name: str, content: bytes, words: str, client: Client, server: Server) -> None:
    refused = client.send(content, name)
    assert (refused.status_code, words in refused.json()["error"]) == (422, True), refused.text
    assert refused.json()["error"].startswith(name)
    assert "/" not in refused.text


def test_a_file_that_is_too_large_is_refused_whatever_its_header_says(client: Client, server: Server) -> None:
    before = set(server.files())
    connection = http.client.HTTPConnection(server.address.removeprefix("http://").strip("/"))
    connection.putrequest("POST", "/photos")
    connection.putheader("Content-Length", str(3 * MAX_FILE_BYTES))
    connection.endheaders()
    answer = connection.getresponse()
    assert (answer.status, b"at most 100 MB" in answer.read()) == (413, True)
    connection.close()

    def pieces() -> Iterator[bytes]:
        for _ in range(MAX_FILE_BYTES // 10**6 + 2):
            yield bytes(10**6)

    with contextlib.suppress(httpx.WriteError):  # the server hung up before all was sent
        assert client.http.post("/photos", content=pieces()).status_code == 413
    client.sample("upscale")
    refused = client.post("/marks", content=b"[" + b"1," * MAX_JSON_BYTES)
    assert (refused.status_code, refused.json()["error"]) == (413, "the request is too long")
    assert not [path for path in set(server.files()) - before if path.stat().st_size > 10**6]


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd", "//etc/passwd", "/assets/../../../../etc/passwd", "/assets/%2e%2e/%2e%2e/limits.py",
        "/assets/..%2flimits.py", "/photos/../../etc/passwd", "/photos/%2e%2e", "/assets/", "/assets", "/index.html",
        "/photos/a/tiles/pixels/0/0/../../../../etc/passwd", "/docs", "/gradio_api/file=/etc/passwd", "/assets/%00.js",
        "/inside/", "/api/",
        "/api/delete", "/assets/editor.js/x", "/photos", "/folders/x/zip", "/matches/x/files/query",
        "/samples/inpaint", "/%ff%fe", "/" + "a" * 8000,
    ],
)  # fmt: skip
def test_what_the_page_does_not_need_is_not_there(path: str, client: Client) -> None:
    request = client.http.build_request("GET", "/")
    request.url = request.url.copy_with(raw_path=path.encode())  # httpx would tidy the dots away
    refused = client.http.send(request)
    assert refused.status_code in (400, 403, 404, 405), refused.text
    assert "root:" not in refused.text
    assert "Traceback" not in refused.text


DEEP = b"[" * 100_000
MARKS: list[Any] = [
    None, 7, [], "x", {}, {"kind": 7}, {"kind": "faces"}, {"kind": "stroke"},
    {"kind": "stroke", "points": [], "size": 5},
    {"kind": "stroke", "points": [[1, 2]], "size": 0}, {"kind": "stroke", "points": [[1, 2]], "size": 1e300},
    {"kind": "stroke", "points": [[1, 2]], "size": "wide"}, {"kind": "stroke", "points": [[1e300, 2]], "size": 5},
    {"kind": "stroke", "points": [[1, None]], "size": 5}, {"kind": "stroke", "points": [[1, 2, 3]], "size": 5},
    {"kind": "stroke", "points": "ab", "size": 5}, {"kind": "stroke", "points": [[True, 2]], "size": 5},
    {"kind": "stroke", "points": [[1, 2]] * 20_001, "size": 5}, {"kind": "lasso", "points": [[1, 2], [3, 4]]},
    {"kind": "grow", "pixels": -1}, {"kind": "grow", "pixels": 1e9}, {"kind": "grow", "pixels": 1.5},
    {"kind": "invert", "layer": "sky"}, {"kind": "stroke", "points": [[1, 2]], "size": 5, "layer": ["hole"]},
    {"kind": "stroke", "points": [[9, 9]], "size": 5, "fill": True, "seed": 2**70},
    {"kind": "stroke", "points": [[9, 9]], "size": 5, "fill": True, "seed": 1.5},
]  # fmt: skip


def test_requests_that_make_no_sense_are_refused_in_a_sentence(client: Client, photo_file: Path) -> None:
    client.open(photo_file)
    bodies = [
        DEEP,
        b'{"a":' * 50_000,
        b"{",
        b"\xff\xfe",
        b'{"kind": NaN}',
        b'{"seed": 1e999}',
        b'{"seed": ' + b"9" * 6000,
    ]
    for body in [*bodies, *(json.dumps(mark).encode() for mark in MARKS)]:
        refused = client.post("/marks", content=body)
        assert refused.status_code in (400, 413, 422), (body[:80], refused.text)
        assert refused.json()["error"]
    for body in (b'{"position": -1}', b'{"position": 1e30}', b'{"position": "x"}', b"{}", b'{"position": 1}', DEEP):
        assert client.post("/position", content=body).status_code in (400, 422)
    for query in (
        "seed=x",
        "seed=1e400",
        f"seed={2**63}",
        "scale=nan",
        "scale=-1",
        "scale=1",
        "scale=inf",
        "scale=" + "9" * 5000,
    ):
        assert client.post(f"/edits/upscale?{query}").status_code == 422, query
    assert client.post("/edits/inpaint").status_code == 404
    assert client.http.post("/samples/faces").status_code == 404
    state = client.get().json()
    assert (state["message"], state["job"]) == (None, None)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../../../tmp/evil.png", "evil.png"),
        ("..\\..\\evil.png", "evil.png"),
        ("..", "picture"),
        ("a\x00b.png", "a_b.png"),
        ("x" * 3000 + ".png", "x" * 80 + ".png"),
        ("<img onerror=alert(1)>.png", "_img onerror_alert(1)_.png"),
        ("Zürich – 山.png", "Zürich _ 山.png"),
    ],
)
def test_names_are_made_plain(name: str, shown: str, client: Client, server: Server, photo_file: Path) -> None:
    assert client.open(photo_file.read_bytes(), name)["name"] == shown
    client.stroke((60, 60), size=20)
    assert client.get("/file").status_code == 200
    assert all(server.folder() in path.resolve().parents for path in server.files())


def test_half_sent_requests_are_closed(tmp_path: Path) -> None:
    with running(tmp_path, *with_timeouts(request=0.5, body=1.0)) as server:
        host, port = server.address.removeprefix("http://").strip("/").split(":")
        own, form = f"Host: {host}:{port}\r\n", "Content-Type: multipart/form-data; boundary=b\r\n"
        for sent in (
            "", "GET / HT", f"GET / HTTP/1.1\r\n{own}", f"GET /nothing HTTP/1.1\r\n{own}\r\nGET /",
            f"POST /photos HTTP/1.1\r\n{own}Content-Length: 99\r\n\r\nabc",
            f"POST /api/upscale HTTP/1.1\r\n{own}{form}Content-Length: 99\r\n\r\n--b",
        ):  # fmt: skip
            with socket.create_connection((host, int(port)), timeout=60) as connection:
                connection.sendall(sent.encode())
                received = b""
                while piece := connection.recv(4096):  # until the server closes
                    received += piece
            assert (b" 408 " in received) == sent.startswith("POST"), (sent, received)
        assert httpx.get(server.address, trust_env=False).status_code == 200


def test_a_full_quota_is_told_in_one_sentence(client: Client, photo: NDArray[Any], server: Server) -> None:
    pictures = [client.http.post("/photos", content=png(photo)) for _ in range(MAX_PHOTOS + 1)]
    assert [answer.status_code for answer in pictures] == [200] * MAX_PHOTOS + [507]
    assert pictures[-1].json()["error"].startswith("8 photographs are open in this browser: close one")
    folder = next(
        path.parents[2] for path in server.files() if path.name == "original.npy" and pictures[0].json()["id"]
    )
    own = next(p for p in server.folder().glob("sessions/*") if len(list(p.iterdir())) == MAX_PHOTOS)
    with (own / "much").open("wb") as file:
        file.truncate(1201 * 10**6)
    client.id = pictures[0].json()["id"]
    refused = client.send(png(photo))
    assert refused.status_code == 507
    assert refused.json()["error"].startswith("your pictures take 120")
    assert folder.exists()
    assert client.get().status_code == 200


def test_a_full_disk_is_told_in_one_sentence_without_a_path(tmp_path: Path, photo: NDArray[Any]) -> None:
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (300_000, 300_000))
    with running(tmp_path, *COMMAND, preexec_fn=limit) as server:
        client = Client(server.address)
        small = client.open(png(photo))
        for content in (bytes(400_000), png(np.tile(photo, (3, 3, 1)) // 64)):  # too large as a file, or as an array
            refused = client.send(content, "large.png")
            assert refused.status_code in (422, 507), refused.text
            assert refused.json() == {
                "error": "there is no room left on the server's disk: make some, or use a smaller picture"
            }
        assert client.get().json()["id"] == small["id"]
        refused = client.http.post("/api/upscale", files={"photo": ("a.png", png(photo))}, data={"scale": "4"})
        assert "no room left" in refused.text or refused.status_code == 200
        assert picture(client.get("/tiles/pixels/0/0/0").content).shape == (128, 160, 3)
