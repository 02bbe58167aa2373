"""Metadata of a run."""

from pathlib import Path

from psal.measure import machine


def test_metadata_names_the_command_the_machine_and_the_versions() -> None:
    found = machine.metadata("psal bench memory", ("torch", "no-such-package"))
    assert found["command"] == "psal bench memory"
    assert found["cores"] >= 1
    assert found["versions"]["torch"]
    assert found["versions"]["no-such-package"] is None


def test_a_command_does_not_show_private_folders(tmp_path: Path) -> None:
    shown = machine.command_line(
        "psal", ["bench", f"--data={tmp_path / 'DAVIS'}", "--out", "../x/results", "--pairs", "3"]
    )
    assert shown == "psal bench --data=folder/DAVIS --out folder/results --pairs 3"


def test_the_commit_is_that_of_the_source() -> None:
    commit = machine.commit()
    assert commit == "unknown" or len(commit.rstrip("+")) == 40
