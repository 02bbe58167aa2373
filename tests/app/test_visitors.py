"""Folders and jobs of visitors."""

from pathlib import Path

import pytest

from psal.app.visitors import UnknownVisitorError, Visitors
from psal.errors import UsageError


def test_a_visitors_files_and_job_go_with_the_last_page(tmp_path: Path) -> None:
    visitors = Visitors(tmp_path)
    visitor = visitors.welcome(None)
    for name in ("one", "two"):
        assert visitors.bind(name, visitor)
        visitors.enter(name, visitor)
    file = visitor.new_folder() / "a.png"
    file.write_bytes(b"x")
    with visitor.job() as stop:
        visitors.leave("one", visitor)
        assert (file.exists(), stop.is_set()) == (True, False)
        visitors.leave("two", visitor)
        assert (file.exists(), stop.is_set()) == (False, True)
    with pytest.raises(UnknownVisitorError):
        visitors.on_page("two")


def test_who_has_no_page_open_is_forgotten_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    visitors = Visitors(tmp_path)
    gone, there = visitors.welcome(None), visitors.welcome(None)
    visitors.enter("page", there)
    (gone.new_folder() / "a.png").write_bytes(b"x")
    visitors.sweep()
    assert len(visitors) == 2
    gone.seen -= 10_000
    there.seen -= 10_000
    visitors.sweep()
    assert len(visitors) == 1
    assert not gone.folder.exists()
    with pytest.raises(UnknownVisitorError):
        visitors.known(gone.token)


def test_a_visitor_has_one_job(tmp_path: Path) -> None:
    visitor = Visitors(tmp_path).welcome(None)
    with visitor.job(), pytest.raises(UsageError, match="one job at a time"), visitor.job():
        pass
    with visitor.job():
        pass


def test_a_page_belongs_to_who_opened_it(tmp_path: Path) -> None:
    visitors = Visitors(tmp_path)
    first, second = visitors.welcome(None), visitors.welcome("not a token of ours")
    assert first.token != second.token
    assert visitors.bind("page", first)
    assert not visitors.bind("page", second)
    assert visitors.on_page("page") is first


def test_what_is_outside_of_a_folder_is_not_owned(tmp_path: Path) -> None:
    visitor = Visitors(tmp_path / "visitors").welcome(None)
    inside = visitor.new_folder() / "a.png"
    inside.write_bytes(b"x")
    (inside.parent / "link").symlink_to(tmp_path)
    assert visitor.owns(inside)
    for path in (
        "/etc/passwd",
        visitor.folder,
        inside.parent / "link" / "b",
        f"{inside}/../../../x",
        "a\x00b",
        "",
        ".",
    ):
        assert not visitor.owns(path)
    visitor.forget(tmp_path / "other")
    visitor.forget(inside)
    assert not inside.parent.exists()
