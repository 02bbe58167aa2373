"""The time left of recorded edits, against the time that they then took."""

import numpy as np
import pytest

from psal.app.time_left import MIN_SECONDS, TimeLeft

# CPU seconds and shares that edits reported on one thread; the last second is their end. The smallest levels are left
# out. A name says by how much the sample photograph was enlarged first.
RECORDED = {
    "inpaint × 7": [
        (1.437, 0.0001), (1.474, 0.0015), (1.501, 0.0035), (1.577, 0.0088), (1.764, 0.0246), (2.732, 0.0984),
        (7.919, 0.5625), (11.08, 1.0), (11.249, 1.0),
    ],
    "inpaint × 3, ten times as slow": [
        (1.95, 0.0003), (2.08, 0.0015), (2.16, 0.0035), (2.5, 0.0141), (2.87, 0.0246), (3.26, 0.0457), (4.95, 0.0984),
        (5.75, 0.1406), (13.78, 0.5625), (18.95, 1.0), (19.23, 1.0),
    ],
    "outpaint × 2.5": [
        (0.178, 0.0001), (0.254, 0.0035), (0.404, 0.0141), (0.605, 0.0246), (0.729, 0.0352), (1.551, 0.0984),
        (5.852, 0.5625), (11.368, 1.0), (11.475, 1.0),
    ],
    "outpaint, ten times as slow": [
        (0.87, 0.0141), (1.85, 0.0563), (3.09, 0.0984), (3.85, 0.1406), (4.61, 0.1828), (5.39, 0.225), (10.43, 0.5625),
        (13.98, 0.9), (20.83, 1.0), (20.96, 1.0),
    ],
    "colorize × 8": [
        (0.414, 0.0037), (0.49, 0.0148), (0.827, 0.0594), (2.46, 0.2375), (10.774, 0.95), (11.278, 1.0), (11.876, 1.0),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", RECORDED)
def test_the_time_left_of_an_edit_is_within_a_factor_of_two_whenever_it_is_told(name: str) -> None:
    reports, end = RECORDED[name], RECORDED[name][-1][0]
    job, told = TimeLeft(), 0
    for now in np.arange(0, end, 0.05):
        while reports and reports[0][0] <= now:
            job.report(reports[0][1], reports[0][0])
            reports = reports[1:]
        left = job.at(float(now))
        if left is not None:
            told += 1
            assert 0.5 <= left / (end - now) <= 2, now
    assert told * 0.05 >= 0.08 * end


def test_steady_work_is_told_exactly_until_little_is_left() -> None:
    job = TimeLeft()
    for percent in range(1, 100):
        share, now = percent / 100, 1 + percent / 5  # a second to start, 20 to work
        job.report(share, now)
        assert job.at(now) == (pytest.approx(21 - now) if 10 <= percent <= 68 else None)


def test_nothing_is_told_before_there_is_a_pace_or_when_it_is_overdue() -> None:
    job = TimeLeft()
    assert (job.share, job.at(100.0)) == (0.0, None)
    job.report(0.7, 30.0)  # how long the first part took says nothing of the pace
    assert (job.share, job.at(31.0)) == (0.7, None)
    quick = TimeLeft()
    quick.report(0.1, 0.1)
    quick.report(0.3, 0.3)
    assert quick.at(MIN_SECONDS / 2) is None
    slow = TimeLeft()
    slow.report(0.1, 1.0)
    slow.report(0.3, 3.0)
    assert slow.at(3.0) == pytest.approx(7.0)
    assert slow.at(5.1) is None
