"""Folders and jobs of sessions."""

from pathlib import Path

import pytest

from psal.app.sessions import Sessions, UnknownSessionError
from psal.errors import UsageError


def test_a_sessions_files_and_job_go_with_the_last_page(tmp_path: Path) -> None:
    sessions = Sessions(tmp_path)
    session = sessions.welcome(None)
    for name in ("one", "two"):
        assert sessions.bind(name, session)
        sessions.enter(name, session)
    file = session.new_folder() / "a.png"
    file.write_bytes(b"x")
    with session.job() as stop:
        sessions.leave("one", session)
        assert (file.exists(), stop.is_set()) == (True, False)
        sessions.leave("two", session)
        assert (file.exists(), stop.is_set()) == (False, True)
    with pytest.raises(UnknownSessionError):
        sessions.on_page("two")


def test_who_has_no_page_open_is_forgotten_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = Sessions(tmp_path)
    gone, there = sessions.welcome(None), sessions.welcome(None)
    sessions.enter("page", there)
    (gone.new_folder() / "a.png").write_bytes(b"x")
    sessions.sweep()
    assert len(sessions) == 2
    gone.seen -= 10_000
    there.seen -= 10_000
    sessions.sweep()
    assert len(sessions) == 1
    assert not gone.folder.exists()
    with pytest.raises(UnknownSessionError):
        sessions.known(gone.token)


def test_a_session_has_one_job(tmp_path: Path) -> None:
    session = Sessions(tmp_path).welcome(None)
    with session.job(), pytest.raises(UsageError, match="one job at a time"), session.job():
        pass
    with session.job():
        pass


def test_a_page_belongs_to_who_opened_it(tmp_path: Path) -> None:
    sessions = Sessions(tmp_path)
    first, second = sessions.welcome(None), sessions.welcome("not a token of ours")
    assert first.token != second.token
    assert sessions.bind("page", first)
    assert not sessions.bind("page", second)
    assert sessions.on_page("page") is first


def test_what_is_outside_of_a_folder_is_not_owned(tmp_path: Path) -> None:
    session = Sessions(tmp_path / "sessions").welcome(None)
    inside = session.new_folder() / "a.png"
    inside.write_bytes(b"x")
    (inside.parent / "link").symlink_to(tmp_path)
    assert session.owns(inside)
    for path in (
        "/etc/passwd",
        session.folder,
        inside.parent / "link" / "b",
        f"{inside}/../../../x",
        "a\x00b",
        "",
        ".",
    ):
        assert not session.owns(path)
    session.forget(tmp_path / "other")
    session.forget(inside)
    assert not inside.parent.exists()
