"""Compare the layer of two checkouts in one run: ``python -m benchmarks.compare ../before .``

Each checkout, with its kernel built, gets a process of its own. The two take turns, so that a disturbance of the
machine hits both alike. Outputs are compared too: the same seed should give the same bits.
"""

import argparse
import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from psal.measure.machine import command_line, metadata
from psal.measure.process import LineServer
from psal.measure.quantities import Quantities
from psal.measure.record import Cell, Record
from psal.measure.table import quantity_tables
from psal.measure.terminal import show, track
from psal.measure.timing import Case, ratio, time_interleaved

CASES: dict[str, dict[str, Any]] = {
    "patch_match": {"call": "patch_match"},
    "patch_match, init='random'": {"call": "patch_match", "init": "random"},
    "patch_match, cosine": {"call": "patch_match", "similarity": "cosine"},
    "patch_match, dot": {"call": "patch_match", "similarity": "dot"},
    "patch_match, k = 15": {"call": "patch_match", "neighbors": 15},
    "patch_match, 3 channels": {"call": "patch_match", "channels": 3},
    "forward": {"call": "forward"},
    "forward, aggregate": {"call": "forward", "aggregate": True},
    "backward": {"call": "backward"},
    "backward, aggregate": {"call": "backward", "aggregate": True},
}
# Runs inside a checkout that may be older than this file: it uses the public API only.
WORKER = """
import hashlib, json, sys
import torch, torch.nn.functional as F
from skimage import data
import psal

settings = json.loads(sys.argv[1])
torch.set_num_threads(settings["threads"])
views = [torch.from_numpy(view).permute(2, 0, 1)[None] / 255 for view in data.stereo_motorcycle()[:2]]
views = [F.interpolate(view, size=(settings["size"],) * 2, mode="bicubic", antialias=True) for view in views]
filters = torch.randn(16, 3, 3, 3, generator=torch.Generator().manual_seed(0))
maps = {3: views, 16: [F.relu(F.conv2d(view, filters, padding=1)) for view in views]}

def run(call, channels=16, **options):
    query, key = (x.detach().requires_grad_(call == "backward") for x in maps[channels])
    if call == "patch_match":
        return psal.patch_match(query, key, seed=0, **options)
    out = psal.patch_attention(query, key, key, seed=0, **options)
    if call == "forward":
        return [out]
    return torch.autograd.grad(out, [query, key], torch.ones_like(out))

for line in sys.stdin:
    tensors = run(**json.loads(line))
    digest = hashlib.sha256(b"".join(x.detach().contiguous().numpy().tobytes() for x in tensors))
    print(digest.hexdigest(), flush=True)
"""


def server(checkout: Path, size: int, threads: int) -> LineServer:
    """A process that runs cases with the package of one checkout, and answers with a digest of the output."""
    environment = os.environ | {"PYTHONPATH": str(checkout.resolve() / "src"), "OMP_WAIT_POLICY": "PASSIVE"}
    settings = json.dumps({"size": size, "threads": threads})
    return LineServer([sys.executable, "-c", WORKER, settings], env=environment)


def main() -> None:
    """Time the layer of two checkouts against each other, and compare the bits of their outputs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=main.__doc__)
    parser.add_argument("before", type=Path, help="checkout with a built kernel")
    parser.add_argument("after", type=Path, help="another one")
    parser.add_argument("--size", type=int, default=256, help="side of the maps in pixels [256]")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads [2]")
    parser.add_argument("--rounds", type=int, default=21, help="timed rounds per case [21]")
    parser.add_argument("--out", type=Path, default=Path("build/compare.json"), help="results file")
    arguments = parser.parse_args()
    settings = {"size": arguments.size, "threads": arguments.threads, "rounds": arguments.rounds}
    about = metadata(command_line("python -m benchmarks.compare", sys.argv[1:]))
    record = Record.resume(arguments.out, settings, about, overwrite=True)
    with (
        server(arguments.before, arguments.size, arguments.threads) as before,
        server(arguments.after, arguments.size, arguments.threads) as after,
    ):
        for case in track(list(CASES), "comparing"):
            record.measure_once(case, partial(_compare, case, before, after, arguments.rounds))
    show(record, quantity_tables(record))
    differing = [case for case, cell in record.cells.items() if not cell["same_bits"]]
    print(f"other bits in: {', '.join(differing)}" if differing else "the same bits in all cases")


def _compare(case: str, before: LineServer, after: LineServer, rounds: int) -> Cell:
    request = json.dumps(CASES[case])
    timings = time_interleaved(
        {"before": Case(lambda _: before.ask(request)), "after": Case(lambda _: after.ask(request))}, rounds=rounds
    )
    quantities = Quantities(label=case)
    quantities.add_ratios("time", [ratio(timings["after"], timings["before"])], against="before")
    quantities.keep_times(case, "stereo pair", timings)
    return quantities.cell(same_bits=before.ask(request) == after.ask(request))


if __name__ == "__main__":
    main()
