"""How much longer a job takes, told from the shares of the work that it has reported so far."""

MIN_SHARE, MIN_SECONDS = 0.1, 1.0  # done and passed, before anything is told
MIN_LEFT = 0.3  # of the whole time: below it, a small error of the whole is a large one of the rest


class TimeLeft:
    """Estimates the rest of a job from its pace since about half of what is done now was done.

    The first part of the work says little: it has the start-up in it, and the small levels of a pyramid.
    """

    def __init__(self) -> None:
        self._reports: list[tuple[float, float]] = []  # seconds and share
        self._end: float | None = None
        self._until = 0.0  # seconds; a pace is not taken to hold for longer than it was seen

    @property
    def share(self) -> float:
        """Share of the work that is done, 0..1."""
        return self._reports[-1][1] if self._reports else 0.0

    def report(self, share: float, seconds: float) -> None:
        """Note a share that is done.

        Args:
            share: 0..1.
            seconds: since the job began.
        """
        before = [report for report in self._reports if 0 < report[1] <= share / 2]
        self._reports.append((seconds, share))
        self._end = None
        if before and MIN_SHARE <= share < 1:
            then, done = before[-1]
            self._end = seconds + (1 - share) * (seconds - then) / (share - done)
            self._until = 2 * seconds - then

    def at(self, seconds: float) -> float | None:
        """Seconds left.

        Args:
            seconds: since the job began.

        Returns:
            None as long as there is nothing to tell it by, when no report has come for a while, and towards the end.

        >>> job = TimeLeft()
        >>> job.report(0.1, seconds=2.0)
        >>> job.report(0.3, seconds=4.0)
        >>> job.at(4.0), job.at(6.0), job.at(6.5)
        (7.0, 5.0, None)
        """
        if self._end is None or not MIN_SECONDS <= seconds <= self._until:
            return None
        left = self._end - seconds
        return left if left >= MIN_LEFT * self._end else None
