"""Somebody who speaks to the server without a browser, politely or not."""

import json
import secrets
from pathlib import Path
from typing import Any

import httpx

API = "/gradio_api"


class Client:
    """A session with a page of its own.

    Args:
        address: of the server.
    """

    def __init__(self, address: str) -> None:
        self.http = httpx.Client(base_url=address, timeout=60, trust_env=False)
        self.page = secrets.token_hex(5)
        self.config: dict[str, Any] = {}

    def open(self) -> "Client":
        self.http.get("/").raise_for_status()
        self.config = self.http.get("/config").json()
        return self

    def upload(self, name: str, content: bytes) -> httpx.Response:
        return self.http.post(f"{API}/upload", files={"files": (name, content)})

    def drop(self, path: Path) -> dict[str, Any]:
        """Upload a file; returns the value that a field has then."""
        [kept] = self.upload(path.name, path.read_bytes()).raise_for_status().json()
        return {"path": kept, "name": path.name}

    def event(self, part: str, kind: str) -> int:
        """Number of the event of a part of the page."""
        [number] = [
            component["id"] for component in self.config["components"] if component["props"].get("elem_id") == part
        ]
        events = (x["id"] for x in self.config["dependencies"] if [number, kind] in x["targets"])
        return int(next(events))

    def join(self, event: int, data: list[Any]) -> httpx.Response:
        message = {"data": data, "fn_index": event, "session_hash": self.page, "event_data": None, "trigger_id": None}
        return self.http.post(f"{API}/queue/join", json=message)

    def answer(self, event: int, data: list[Any]) -> Any:
        """What an event returns; raises what the server has to say if it fails."""
        joined = self.join(event, data)
        joined.raise_for_status()
        with self.http.stream("GET", f"{API}/queue/data", params={"session_hash": self.page}) as lines:
            for line in lines.iter_lines():
                message = json.loads(line.removeprefix("data:")) if line.startswith("data:") else {}
                if message.get("msg") == "process_completed" and message["event_id"] == joined.json()["event_id"]:
                    if not message["success"]:
                        raise RuntimeError(str(message["output"]))
                    return message["output"]["data"]
        raise RuntimeError("no answer came")

    def fill(self, photo: Any, mask: Any, seed: int) -> str:
        """Fill what a mask marks; returns the message."""
        message, *_ = self.answer(self.event("inpaint-run", "click"), [photo, mask, "", seed, None])
        return str(message)

    def open_mask(self, value: Any, photo: Any) -> Any:
        """The message and the field's value after a mask was dropped."""
        message, opened, *_ = self.answer(self.event("inpaint-mask", "upload"), [value, photo])
        return message, opened

    def open_photo(self, value: Any) -> Any:
        """The message and the field's value after a picture was dropped for filling."""
        message, opened, *_ = self.answer(self.event("inpaint-photo", "upload"), [value])
        return message, opened
