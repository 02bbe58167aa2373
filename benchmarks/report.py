"""From the measurements' JSON to Markdown."""

from dataclasses import dataclass
from statistics import median
from typing import Any

from psal.experiments.markdown import number, origin


@dataclass(frozen=True)
class Target:
    """What a row shows and what it must reach: a lower limit if more is better, else an upper one."""

    what: str
    least: float | None = None
    aim: float | None = None
    more_is_better: bool = False

    def judge(self, value: float) -> str:
        """``no``, ``yes``, or ``yes, aim`` if that is reached too; nothing where no limit is set."""
        if self.least is None:
            return ""
        if not self._reaches(value, self.least):
            return "no"
        return "yes, aim" if self.aim is not None and self._reaches(value, self.aim) else "yes"

    def _reaches(self, value: float, limit: float) -> bool:
        return value >= limit if self.more_is_better else value <= limit


def row(target: Target, value: float, low: float, high: float) -> dict[str, Any]:
    """One line of the table as it goes into the JSON; low and high are its spread."""
    sign = "≥" if target.more_is_better else "≤"
    return {
        "what": target.what,
        "measured": value,
        "spread": [low, high],
        "least": None if target.least is None else f"{sign} {number(target.least)}",
        "aim": None if target.aim is None else f"{sign} {number(target.aim)}",
        "ok": target.judge(value),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as a Markdown table."""
    lines = ["| what | measured | at least | aim | ok |", "|---|---|---|---|---|"]
    for line in rows:
        low, high = line["spread"]
        measured = f"{number(line['measured'])} ({number(low)} to {number(high)})"
        lines.append(f"| {line['what']} | {measured} | {line['least'] or ''} | {line['aim'] or ''} | {line['ok']} |")
    return "\n".join(lines)


def layer_markdown(record: dict[str, Any]) -> str:
    """results/layer.md: the table, the times behind it, and on what and how they were measured."""
    settings = record["settings"]
    size, memory_size, channels = settings["size"], settings["memory_size"], settings["channels"]
    names = settings["sequences"]
    return f"""\
{table(record["rows"])}

In brackets the spread: of times from the lowest first to the highest third quartile on any pair of frames, of costs
and memory from the least to the greatest. Unless a row says otherwise: {size} × {size} pixels, {channels} channels,
patches of {settings["patch_size"]}, k = {settings["neighbors"]}, {settings["threads"]} threads.

- Maps: frames 0 and {settings["apart"]} of the DAVIS sequences {", ".join(names)};
  their largest centred square, resized, then {channels} random 3 × 3 convolutions with ReLU. The value is the key.
- Times: medians of {settings["runs"]} runs after two that don't count, taking turns with what they are compared with;
  exact search ran once a pair. faiss gets its patches ready-made: its time is for training, filling and searching.
- Cost: mean squared distance between a query's patch and that of its best match.
- Memory: of a fresh process at {memory_size} × {memory_size} pixels, the peak in forward beyond inputs and output, or
  in backward beyond those and the gradients of query, key and value, whichever is larger; the worst over patches of
  3, 7 and 15, without and with aggregation.

<details><summary>The times behind the ratios</summary>

{_times(record["timings"])}

</details>

{origin(record["metadata"])}"""


def editing_markdown(record: dict[str, Any]) -> str:
    """results/editing.md: the table, what was measured how, and on what."""
    return f"""\
{table(record["rows"])}

In brackets the least and the greatest of single pictures. Each row's commit is in the JSON.

{record["notes"]}

{_origins(record["groups"])}"""


def _origins(groups: dict[str, Any]) -> str:
    """On what each group of rows was measured, those of one machine and day together."""
    names: dict[str, list[str]] = {}
    for name, group in groups.items():
        names.setdefault(origin(group["metadata"]), []).append(f"`{name}`")
    if len(names) == 1:
        return next(iter(names))
    return "\n".join(f"Rows of {', '.join(own)}: {text}" for text, own in names.items())


def app_markdown(record: dict[str, Any]) -> str:
    """results/app.md: the table, what was measured how, and on what."""
    return f"""\
{table(record["rows"])}

In brackets the least and the greatest of single runs.

{record["notes"]}

{origin(record["metadata"])}"""


def _times(timings: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Milliseconds of everything that was timed: the median of the pairs' medians, and the extreme quartiles."""
    lines = ["| what | ms | quartiles |", "|---|---|---|"]
    for group, pairs in timings.items():
        for case in next(iter(pairs.values())):
            records = [pair[case] for pair in pairs.values()]
            middle = 1e3 * median(r["median"] for r in records)
            low, high = 1e3 * min(r["quartiles"][0] for r in records), 1e3 * max(r["quartiles"][1] for r in records)
            lines.append(f"| {group}: {case} | {number(middle)} | {number(low)} to {number(high)} |")
    return "\n".join(lines)
