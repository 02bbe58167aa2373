"""Somebody who speaks to the server without a browser, politely or not."""

import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray
from PIL import Image

PATIENCE = 180  # seconds; a busy machine is no failure


class Client:
    """A session with one open photograph at most.

    Args:
        address: of the server.
    """

    def __init__(self, address: str) -> None:
        self.http = httpx.Client(base_url=address, timeout=PATIENCE, trust_env=False)
        self.id = ""

    def open(self, content: bytes | Path, name: str = "photo.png") -> dict[str, Any]:
        """Open a photograph in the place of the last one; returns the state."""
        answer = self.send(content, name).raise_for_status().json()
        self.id = answer["id"]
        return dict(answer)

    def send(self, content: bytes | Path, name: str = "photo.png") -> httpx.Response:
        content, name = (content.read_bytes(), content.name) if isinstance(content, Path) else (content, name)
        return self.http.post("/photos", params={"name": name, "replaces": self.id}, content=content)

    def sample(self, edit: str = "inpaint") -> dict[str, Any]:
        answer = self.http.post(f"/samples/{edit}", params={"replaces": self.id}).raise_for_status().json()
        self.id = answer["id"]
        return dict(answer)

    def post(self, path: str, json: Any = None, **options: Any) -> httpx.Response:
        return self.http.post(f"/photos/{self.id}{path}", json=json, **options)

    def get(self, path: str = "", **options: Any) -> httpx.Response:
        return self.http.get(f"/photos/{self.id}{path}", **options)

    def do(self, path: str, json: Any = None, **options: Any) -> dict[str, Any]:
        """Post, wait for the job if that starts one, and return the state."""
        answer = self.post(path, json, **options)
        assert answer.status_code == 200, answer.text
        return self.wait()

    def states(self) -> Iterator[dict[str, Any]]:
        """The present state and every further one."""
        with self.http.stream("GET", f"/photos/{self.id}/events") as lines:
            for line in lines.iter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))

    def wait(self) -> dict[str, Any]:
        """The state when no job runs any more."""
        return next(state for state in self.states() if state["job"] is None)

    def stroke(self, *points: tuple[float, float], size: float = 20, **more: Any) -> dict[str, Any]:
        return self.do("/marks", {"kind": "stroke", "points": [list(point) for point in points], "size": size} | more)

    def pixels(self) -> NDArray[Any]:
        """The photograph as its tiles show it, of at most 512 × 512 pixels."""
        return picture(self.get("/tiles/pixels/0/0/0").content)

    def hole(self) -> NDArray[np.bool_]:
        answer = self.get("/mask")
        return picture(answer.raise_for_status().content) > 127

    def download(self, **params: str) -> bytes:
        return self.get("/file", params=params).raise_for_status().content


def picture(content: bytes) -> NDArray[Any]:
    return np.asarray(Image.open(io.BytesIO(content)))


def png(pixels: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def wait_until(condition: Any) -> None:
    """Ask again and again, until the patience is at its end."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
