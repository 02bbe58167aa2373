"""Folders of sessions, how long they are kept, and how many steps."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.client import Client, png, wait_until
from app.conftest import Server, running, with_timeouts
from psal.app import document as document_module
from psal.app.document import Document
from psal.app.sessions import Sessions, UnknownSessionError
from psal.app.steps import Fill


def test_who_has_no_page_open_is_forgotten_after_a_while(tmp_path: Path) -> None:
    sessions = Sessions(tmp_path, idle=600)
    gone, there = sessions.welcome(None), sessions.welcome("not a token of ours")
    assert gone.token != there.token
    assert sessions.welcome(gone.token) is gone
    there.holds = 1
    (gone.new_folder() / "a.png").write_bytes(b"x")
    sessions.sweep()
    assert len(sessions) == 2
    gone.seen -= 599
    sessions.sweep()
    assert gone.folder.exists()
    gone.seen -= 2
    there.seen -= 10_000
    sessions.sweep()
    assert (len(sessions), gone.folder.exists()) == (1, False)
    with pytest.raises(UnknownSessionError):
        sessions.known(gone.token)


def test_a_cut_connection_leaves_the_photograph_and_its_job(
    server: Server, client: Client, photo: NDArray[Any]
) -> None:
    client.open(png(photo))
    states = client.states()
    assert next(states)["steps"] == []
    client.post("/marks", {"kind": "stroke", "points": [[60, 60]], "size": 25, "fill": True})
    states.close()  # type: ignore[attr-defined]
    again = Client(server.address)  # the same browser, over a new connection
    again.http.cookies, again.id = client.http.cookies, client.id
    client.http.close()
    assert again.wait()["steps"] == ["Remove"]


def test_an_idle_session_ends_and_a_connected_one_stays(tmp_path: Path, photo: NDArray[Any]) -> None:
    with running(tmp_path, *with_timeouts(idle=2.0, sweep=0.1, ping=0.05)) as server:
        stays, goes = Client(server.address), Client(server.address)
        stays.open(png(photo))
        states = stays.states()
        next(states)
        kept = set(server.files())
        goes.open(png(photo))
        wait_until(lambda: set(server.files()) == kept)
        assert goes.get().json() == {"error": "this page has expired: load it again"}
        assert stays.get().status_code == 200


def make_document(folder: Path, photo: NDArray[Any]) -> Document:
    (folder / "canvas").mkdir(parents=True)
    np.save(folder / "original.npy", photo)
    np.save(folder / "canvas" / "pixels.npy", photo)
    return Document(folder, "photo.png", "PNG")


def paint(document: Document, value: int) -> None:
    """Mark and fill a square, as a worker would."""
    size = document.canvas.size
    mask = np.zeros(size, bool)
    mask[value : value + 10, 5:25] = True
    mark = document.mark("Brush", "hole", (0, 0, *size), mask)
    hole = document.marked("hole")
    assert hole is not None
    fill = Fill("Remove", hole, hole, document.new_path(), [document.new_path()], [0])
    np.save(fill.variants[0], np.full((hole.count, *document.canvas.pixels.shape[2:]), value, np.uint8))
    document.filled(fill, mark)


def test_old_steps_are_dropped_with_a_word_and_their_files_go(
    tmp_path: Path, photo: NDArray[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_module, "MAX_STEP_BYTES", 10_000)
    document = make_document(tmp_path, photo)
    states = [np.array(photo)]
    for value in range(30):
        paint(document, value)
        states.append(np.array(document.canvas.pixels))
    state = document.state()
    kept = len(state["steps"])
    assert 1 < kept < 30
    assert state["dropped"] == "the oldest steps were dropped, to keep the photograph within its share of the disk"
    size = sum(path.stat().st_size for path in tmp_path.glob("*.npy") if path.name != "original.npy")
    assert size < 20_000
    for position in range(kept, -1, -1):
        document.go_to(position)
        np.testing.assert_array_equal(document.canvas.pixels, states[30 - kept + position])
    np.testing.assert_array_equal(document.original, photo)


def test_steps_cost_what_they_change(tmp_path: Path, photo: NDArray[Any]) -> None:
    document = make_document(tmp_path, np.tile(photo, (8, 8, 1)))
    for value in range(20):
        paint(document, value)
    assert sum(step.bytes for step in document.steps) < 20 * 2 * (200 * 3 + 400)
    document.go_to(0)
    paint(document, 3)
    assert len(list(tmp_path.glob("*.npy"))) == 1 + 4  # the original; hole, stroke, before and after of one fill
