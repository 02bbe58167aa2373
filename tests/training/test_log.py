"""The log of losses."""

import csv
from pathlib import Path

from support.commands import Run
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def test_logs_of_a_resumed_run_have_no_gaps_or_duplicates(train: Run, tmp_path: Path) -> None:
    run = tmp_path / "run"
    for iterations in (50, 100, 150):
        assert train(run, "--iterations", iterations).returncode == 0
        with (run / "log.csv").open("a") as file:
            file.write("20")  # cut off, as by a full disk
    with (run / "log.csv").open() as file:
        assert [row["step"] for row in csv.DictReader(file)] == ["50", "100", "150", "20"]
    events = EventAccumulator(str(run / "tensorboard")).Reload()
    assert [event.step for event in events.Scalars("loss")] == [50, 100, 150]
