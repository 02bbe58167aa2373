"""Who may ask: names of the server, other pages, the token."""

import http.client
import socket
from pathlib import Path

import httpx

from app.client import Client
from app.conftest import COMMAND, Server, running


def status(server: Server, *headers: tuple[str, str], path: str = "/", method: str = "GET") -> int:
    """Status of a request with exactly these headers."""
    connection = http.client.HTTPConnection(server.address.removeprefix("http://").strip("/"), timeout=30)
    connection.putrequest(method, path, skip_host=True)
    for name, value in headers:
        connection.putheader(name, value)
    connection.putheader("Content-Length", "0")
    connection.endheaders()
    try:
        return connection.getresponse().status
    finally:
        connection.close()


def port_of(server: Server) -> str:
    return server.address.rsplit(":", 1)[1].strip("/")


def test_the_server_is_called_by_its_own_names_only(server: Server) -> None:
    port = port_of(server)
    for name in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", f"LOCALHOST:{port}"):
        assert status(server, ("Host", name)) == 200
    for name in (
        "a`b.evil.example", f"a`b.evil.example:{port}", f"evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "",
        f"127.0.0.1:{port}@evil.example", f"127.0.0.1.evil.example:{port}", f"evil.example/127.0.0.1:{port}",
        f"127.0.0.1:{port} ,evil.example", f"[::1:{port}", f"localhost.:{port}", f"0x7f000001:{port}", f"127.1:{port}",
        f"192.0.2.1:{port}",
    ):  # fmt: skip
        assert status(server, ("Host", name)) in (400, 421), name
    assert status(server) in (400, 421)
    assert status(server, ("Host", f"127.0.0.1:{port}"), ("Host", "evil.example")) in (400, 421)


def test_other_pages_are_not_served(server: Server) -> None:
    port = port_of(server)
    own = ("Host", f"127.0.0.1:{port}")
    post = {"path": "/samples/upscale", "method": "POST"}
    for origin in (
        "http://evil.example", "null", f"http://127.0.0.1:{int(port) + 1}", f"https://127.0.0.1:{port}",
        f"http://localhost:{port}", "http://127.0.0.1", f"http://127.0.0.1:{port}.evil.example", "",
    ):  # fmt: skip
        assert status(server, own, ("Origin", origin), **post) == 403, origin
    for site in ("cross-site", "same-site"):
        assert status(server, own, ("Sec-Fetch-Site", site), **post) == 403
        assert status(server, own, ("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", "no-cors")) == 403
    assert status(server, own, ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")) == 200  # a link
    good = (own, ("Origin", f"http://127.0.0.1:{port}"), ("Sec-Fetch-Site", "same-origin"))
    assert status(server, *good, **post) == 200
    assert status(server, own, ("Origin", "http://evil.example"), path="/api/upscale", method="POST") == 403


def test_other_computers_need_the_token(tmp_path: Path) -> None:
    with running(tmp_path, *COMMAND, "--host", "0.0.0.0") as server:
        address, token = server.address.split("?token=")
        assert len(token) >= 32
        with httpx.Client(base_url=address, trust_env=False) as stranger:
            for path in ("/", "/api", "/assets/editor.js", "/photos/a", "/?token=wrong", "/api/openapi.json"):
                assert stranger.get(path).status_code == 401, path
            assert stranger.post("/samples/upscale").status_code == 401
            assert stranger.post("/api/upscale").status_code == 401
            bearer = {"Authorization": f"Bearer {token}"}
            assert stranger.get("/api/openapi.json", headers=bearer).status_code == 200
            port = address.rsplit(":", 1)[1].strip("/")
            assert stranger.get("/", headers=bearer | {"Host": f"evil.example:{port}"}).status_code == 421
            assert stranger.get("/", headers=bearer | {"Host": f"192.0.2.1:{port}"}).status_code == 200
            assert stranger.get("/", headers=bearer | {"Host": f"{socket.gethostname()}:{port}"}).status_code == 200
        client = Client(address)
        welcome = client.http.get(f"/?token={token}&x=1")
        assert (welcome.status_code, welcome.headers["location"]) == (303, "/?x=1")
        cookie = welcome.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert client.http.get("/").status_code == 200
        assert client.sample("upscale")["width"] == 192
        server.process.terminate()
        _, complaints = server.process.communicate(timeout=30)
        assert complaints.startswith("warning: whoever has the address below can use the page")


def test_photographs_of_other_sessions_are_not_there(server: Server, client: Client, photo_file: Path) -> None:
    client.open(photo_file)
    other = Client(server.address)
    other.sample("upscale")
    for path in ("", "/tiles/pixels/0/0/0", "/file", "/mask", "/events"):
        assert client.get(path).status_code == 200 if path != "/events" else True
        assert other.http.get(f"/photos/{client.id}{path}").status_code == 403
    for path in ("/marks", "/fill", "/position", "/stop", "/close", "/variant", "/edits/upscale"):
        assert other.http.post(f"/photos/{client.id}{path}", json={}).status_code == 403
    with httpx.Client(base_url=server.address, trust_env=False) as stranger:
        assert stranger.get(f"/photos/{client.id}").status_code == 403
    assert client.get().status_code == 200


def test_answers_are_not_kept_and_load_nothing_from_elsewhere(client: Client, photo_file: Path) -> None:
    client.open(photo_file)
    for path in ("", "/tiles/pixels/0/0/0", "/tiles/hole/0/0/0", "/file", "/mask"):
        assert client.get(path).headers["cache-control"] == "no-store"
    for path in ("/", "/inside", "/api", "/assets/editor.js", "/nothing"):
        headers = client.http.get(path).headers
        assert "default-src 'none'; script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    for method in ("PUT", "DELETE", "PATCH"):
        for path in ("/tiles/pixels/0/0/0", "/file", "", "/marks"):
            assert client.http.request(method, f"/photos/{client.id}{path}").status_code == 405
        assert client.http.request(method, "/assets/style.css").status_code == 405
    assert client.http.request("TRACE", "/").status_code == 405
