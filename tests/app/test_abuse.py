"""What the page does with files and requests that nobody should send."""

import base64
import http.client
import io
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import expect

from app.client import API, Client
from app.conftest import OpenPage, Server
from app.page import AppPage
from psal.app.limits import MAX_FILE_BYTES, MAX_MESSAGE_BYTES
from psal.io.photo import Photo

SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def png_of_zeros(width: int, height: int) -> bytes:
    """A small file that is a huge black picture."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(1 + (width + 7) // 8)) for _ in range(height)) + packer.flush()
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    opened = Client(server.address).open()
    yield opened
    opened.http.close()


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
def test_a_bad_file_gets_a_sentence(name: str, content: bytes, words: str, page: AppPage, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    page.choose("inpaint", "photo", tmp_path / name)
    expect(page.opening_message("inpaint")).to_contain_text(words)
    expect(page.opening_message("inpaint")).to_contain_text(name)
    expect(page.opening_message("inpaint")).not_to_contain_text("/")
    expect(page.preview("inpaint", "photo")).to_be_hidden()
    if name == "letter.png":
        page.screenshot("inpaint-bad-file")


def test_a_mask_of_another_size_gets_a_sentence(page: AppPage, photo_file: Path, tmp_path: Path) -> None:
    Photo(np.full((50, 60), 255, np.uint8)).save(tmp_path / "mask.png")
    page.drop("inpaint", "photo", photo_file)
    page.choose("inpaint", "mask", tmp_path / "mask.png")
    expect(page.opening_message("inpaint")).to_contain_text(
        "mask.png is 60 × 50 pixels and the picture 160 × 128: they must have the same size."
    )


def test_a_file_that_is_too_large_is_refused_whatever_its_header_says(client: Client, server: Server) -> None:
    connection = http.client.HTTPConnection(server.address.removeprefix("http://"))
    connection.putrequest("POST", f"{API}/upload")
    connection.putheader("Content-Length", str(MAX_FILE_BYTES + 10**6))
    connection.putheader("Cookie", "; ".join(f"{name}={value}" for name, value in client.http.cookies.items()))
    connection.endheaders()
    answer = connection.getresponse()
    assert (answer.status, b"at most 100 MB" in answer.read()) == (413, True)
    connection.close()

    def pieces() -> Iterator[bytes]:
        yield b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.png"\r\n\r\n'
        for _ in range(MAX_FILE_BYTES // 10**6 + 2):
            yield bytes(10**6)

    try:
        kind = {"content-type": "multipart/form-data; boundary=b"}
        refused = client.http.post(f"{API}/upload", headers=kind, content=pieces())
        assert refused.status_code == 413
    except httpx.WriteError:
        pass  # the server hung up before all was sent
    message = {"data": ["x" * MAX_MESSAGE_BYTES], "fn_index": 0, "session_hash": client.page}
    refused = client.http.post(f"{API}/queue/join", json=message)
    assert (refused.status_code, "may have at most 8 MB" in refused.text) == (413, True)
    assert not [path for path in server.sessions_files() if path.stat().st_size > 10**6]


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd", "//etc/passwd", "%2Fetc%2Fpasswd", "../../../../../../etc/passwd", "/proc/self/environ",
        "/proc/self/cwd/pyproject.toml", "http://127.0.0.1:1/", "https://example.com/a.png", "file:///etc/passwd",
        "C:/Windows/win.ini", "pyproject.toml", ".", "/etc/passwd%00.png",
    ],
)  # fmt: skip
def test_no_file_of_the_machine_can_be_read(path: str, client: Client, server: Server) -> None:
    for address in (f"{API}/file={path}", f"{API}/file={server.folder()}/../{path}", f"{API}/file/{path}"):
        refused = client.http.get(address)
        assert refused.status_code in (403, 404)
        assert "root:" not in refused.text
    refused = client.join(client.event("inpaint-photo", "upload"), [{"path": path, "name": "a.png"}])
    assert refused.status_code == 403


def test_files_of_other_sessions_cannot_be_used(client: Client, server: Server, photo_file: Path) -> None:
    value = client.drop(photo_file)
    assert client.http.get(f"{API}/file={value['path']}").status_code == 200
    message, opened = client.open_photo(value)
    assert (message, opened["width"]) == ("", 160)
    other = Client(server.address).open()
    assert other.http.get(f"{API}/file={value['path']}").status_code == 403
    assert other.join(other.event("inpaint-photo", "upload"), [value]).status_code == 403
    other.page = client.page  # somebody else's page
    assert other.join(other.event("inpaint-photo", "upload"), [other.drop(photo_file)]).status_code == 403
    assert other.http.get(f"{API}/queue/data", params={"session_hash": client.page}).status_code == 403
    assert other.http.get(f"{API}/heartbeat/{client.page}").status_code == 403
    cancel = {"session_hash": client.page, "fn_index": 0, "event_id": "a"}
    assert other.http.post(f"{API}/cancel", json=cancel).status_code == 403


def test_links_do_not_lead_out_of_a_sessions_folder(client: Client, photo_file: Path) -> None:
    link = Path(client.drop(photo_file)["path"]).with_name("link.png")
    link.symlink_to("/etc/passwd")
    assert client.http.get(f"{API}/file={link}").status_code == 403


@pytest.mark.parametrize("name", ["../../../../tmp/evil.png", "/etc/evil.png", "..\\..\\evil.png", "..", "a\x00b.png"])
def test_an_upload_stays_in_the_sessions_folder(name: str, client: Client, server: Server) -> None:
    answer = client.upload(name, b"x")
    if answer.status_code == 200:
        [kept] = answer.json()
        assert server.folder() / "sessions" in Path(kept).parents
        assert ".." not in Path(kept).parts
    else:
        assert answer.status_code == 400


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/gradio_api/proxy=https://example.com/"), ("GET", "/proxy=https://example.com/"),
        ("POST", "/gradio_api/run/predict"), ("POST", "/gradio_api/call/fill"), ("POST", "/gradio_api/api/fill"),
        ("POST", "/gradio_api/component_server"), ("GET", "/gradio_api/deep_link"), ("GET", "/?deep_link=../x"),
        ("GET", "/monitoring"), ("GET", "/monitoring/summary"), ("GET", "/gradio_api/openapi.json"),
        ("GET", "/gradio_api/runs"), ("POST", "/gradio_api/vibe-edit/"), ("GET", "/gradio_api/vibe-code"),
        ("POST", "/gradio_api/process_recording"), ("GET", "/gradio_api/stream/a/b/1/playlist.m3u8"),
        ("GET", "/gradio_api/custom_component/1/client/component/index.js"), ("GET", "/docs"), ("POST", "/login"),
        ("GET", "/gradio_api/mcp/sse"), ("GET", "/static/../../../../etc/passwd"), ("GET", "/gradio_api/upload"),
        ("GET", "/assets/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd"),
    ],
)  # fmt: skip
def test_what_the_page_does_not_need_is_not_there(method: str, path: str, client: Client) -> None:
    # A raw target, since httpx would tidy the dots away.
    request = client.http.build_request(method, "/", json={} if method == "POST" else None)
    request.url = request.url.copy_with(raw_path=path.encode())
    refused = client.http.send(request)
    assert refused.status_code in (403, 404, 405)
    assert "root:" not in refused.text


def test_nothing_happens_without_the_page_or_under_another_name(server: Server) -> None:
    with httpx.Client(base_url=server.address, trust_env=False) as stranger:
        assert stranger.post(f"{API}/upload", files={"files": ("a.png", b"x")}).status_code == 403
        joined = stranger.post(f"{API}/queue/join", json={"data": [], "fn_index": 0, "session_hash": "a"})
        assert joined.status_code == 403
        assert stranger.get("/", headers={"host": "evil.example"}).status_code == 403


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"session_hash": 7}', b'{"session_hash": "a", "fn_index": "x"}', b"[" * 9999],
)
def test_a_request_that_makes_no_sense_is_refused(content: bytes, client: Client) -> None:
    refused = client.http.post(f"{API}/queue/join", content=content)
    assert refused.status_code in (400, 403, 404, 422)
    assert "Traceback" not in refused.text


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"seed": 1e300}, "64 bits"),
        ({"painted": "javascript:alert(1)"}, "did not arrive"),
        ({"painted": "data:image/png;base64,AAAA"}, "not a picture"),
        ({"photo": None}, "Give a photograph first"),
        ({"photo": [1, 2]}, "Give a photograph first"),
        ({"photo": {"path": 7}}, "403"),
    ],
)
def test_values_that_no_page_sends_get_a_sentence(
    values: dict[str, Any], words: str, client: Client, photo_file: Path
) -> None:
    _, photo = client.open_photo(client.drop(photo_file))
    given = {"photo": photo, "mask": None, "painted": "", "seed": 0, "done": None} | values
    try:
        message, *_ = client.answer(client.event("inpaint-run", "click"), list(given.values()))
    except (httpx.HTTPStatusError, RuntimeError) as error:  # the middleware or Gradio had something against it
        message = str(error)
    assert words in message


def test_painting_of_another_size_gets_a_sentence(client: Client, photo_file: Path) -> None:
    _, photo = client.open_photo(client.drop(photo_file))
    buffer = io.BytesIO()
    Image.new("RGBA", (7, 9), "white").save(buffer, "PNG")
    painted = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
    message, *_ = client.answer(client.event("inpaint-run", "click"), [photo, None, painted, 0, None])
    assert "must be RGBA of 160 × 128 pixels" in message


@pytest.fixture
def large(tmp_path: Path, photo: NDArray[Any]) -> Path:
    """A picture that takes a while to rebuild."""
    Image.fromarray(photo).resize((3400, 3400)).save(tmp_path / "large.png", compress_level=1)
    return tmp_path / "large.png"


def start_long_job(page: AppPage, large: Path) -> None:
    page.go_to("reconstruct")
    page.drop("reconstruct", "photo", large)
    page.drop("reconstruct", "reference", large)
    page.button("reconstruct", "run").click()
    expect(page.message("reconstruct")).to_contain_text("reconstruct")


@pytest.mark.slow  # not reliable yet: the messages of the stop and of the job arrive in either order
def test_a_job_stops_when_told_to_and_the_next_one_runs(page: AppPage, large: Path) -> None:
    start_long_job(page, large)
    page.screenshot("reconstruct-running", full_page=True)
    page.button("reconstruct", "stop").click()
    expect(page.message("reconstruct")).to_contain_text("Stopped")
    page.put_sample("reconstruct")
    page.run("reconstruct", "Done in")


def test_one_job_a_session_and_a_queue_that_says_where_one_stands(open_page: OpenPage, large: Path) -> None:
    first, second, third = open_page(), open_page(), open_page()
    for page in (first, third):
        page.go_to("upscale")
        page.put_sample("upscale")
    for page in (first, second):
        start_long_job(page, large)
    first.go_to("upscale")
    first.button("upscale", "run").click()
    expect(first.toast()).to_contain_text("one job at a time")
    third.button("upscale", "run").click()
    expect(third.message("upscale")).to_contain_text("queue: 1/1")
    third.screenshot("queue")
    second.button("reconstruct", "stop").click()
    expect(third.message("upscale")).to_contain_text("Done in")
    first.go_to("reconstruct")
    first.button("reconstruct", "stop").click()
    expect(first.message("reconstruct")).to_contain_text("Stopped")


def test_leaving_ends_the_job(open_page: OpenPage, server: Server, large: Path) -> None:
    others = set(server.sessions_files())
    page = open_page()
    start_long_job(page, large)
    page.page.close()
    server.wait_until(lambda: set(server.sessions_files()) <= others)
    other = open_page()
    other.put_sample("inpaint")
    other.wait_for_canvas()
    other.run("inpaint", "Done in")
