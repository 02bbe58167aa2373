"""The Triton kernels compiled without a device: their configurations, and the resources that each takes."""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from psal.ops.morton import MIN_KEPT, SPARE
from psal.ops.triton import attend, layout, links, score, search, seeds

TARGETS = {
    "sm_80": GPUTarget("cuda", 80, 32),
    "sm_89": GPUTarget("cuda", 89, 32),
    "sm_90": GPUTarget("cuda", 90, 32),
    "sm_100": GPUTarget("cuda", 100, 32),
    "gfx90a": GPUTarget("hip", "gfx90a", 64),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}
SCAN = "scan of the curves"
KERNELS = {
    SCAN: seeds.scan,
    "start": search.start,
    "flood": search.flood,
    "score": score.score_matches,
    "score gradient": links.sum_links,
    "attend": attend.average,
    "attend, gradient of scores": attend.score_gradient,
    "attend, gradient of values": attend.value_gradient,
}
DEFAULT_CHANNELS, DEFAULT_NEIGHBORS, PATCH = (3, 16, 64), (1, 3, 7), 7
WARP_SLOTS = {80: 64, 89: 48, 90: 64, 100: 64}  # per multiprocessor
REGISTER_FILE = 65536  # per multiprocessor
SIZES = tuple(f"{grid}{axis}" for grid in "qknf" for axis in "dhw")  # arguments that are a grid's sizes
COUNTS = ("neighbors", "matches", "candidate_count", "query_size", "key_size", "batch_size")  # a launch folds ones
MAP_NAMES = ("query", "key", "near", "far", "value")
SPILL = re.compile(r"\b(?:STL|LDL)\b")  # instructions that write or read the stack
TYPE_NAMES = {"float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


@dataclass(frozen=True)
class Configuration:
    """What a kernel is compiled for.

    Attributes:
        kernel: a name of :data:`KERNELS`.
        channels: of the maps.
        neighbors: k, where the kernel depends on it.
        dtype: of the maps.
        constants: that differ from those of a default search, by name, as sorted pairs.
    """

    kernel: str
    channels: int = 16
    neighbors: int | None = None
    dtype: str = "float32"
    constants: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        parts = [self.kernel, f"C = {self.channels}"]
        parts += [] if self.neighbors is None else [f"k = {self.neighbors}"]
        return ", ".join([*parts, self.dtype, *(f"{name} = {value}" for name, value in self.constants)])


def default_configurations() -> Iterator[Configuration]:
    """Yield the configurations that must not spill: 7 × 7 patches, "l2", as the layer uses them by default."""
    yield from (Configuration(SCAN, 16, neighbors) for neighbors in (3, 7))  # 1 keeps as many candidates as 3
    for kernel in KERNELS:
        if kernel in ("start", "flood"):
            yield from (Configuration(kernel, *both) for both in product(DEFAULT_CHANNELS, DEFAULT_NEIGHBORS))
            yield Configuration(kernel, 16, 3, "float16")
        elif kernel != SCAN:
            yield from (Configuration(kernel, channels) for channels in DEFAULT_CHANNELS)
            yield Configuration(kernel, 16, dtype="float16")


def unusual_configurations() -> Iterator[Configuration]:
    """Yield configurations that must compile: single pixels, everything else at once, the longest list of matches."""
    masks = {"QUERY_MASK": True, "KEY_MASK": True, "KNOWN": True}
    everything = {"DIMS": 3, "PZ": 3, "PY": 1, "L2": False, "COSINE": True, "WIDE": True, **masks}
    variants: list[tuple[int, str, dict[str, Any]]] = [
        (5, "float64", {**everything, "TZ": 4, "TY": 4, "TX": 4}),
        (1, "bfloat16", {"DIMS": 1, "PY": 1, "TY": 1, "TX": 64, **dict.fromkeys(SIZES, 1), **dict.fromkeys(COUNTS, 1)}),
    ]
    for kernel in KERNELS:
        for channels, dtype, constants in variants:
            yield Configuration(kernel, channels, 2, dtype, tuple(sorted(constants.items())))
    yield Configuration("flood", 3, 32)


def compile_for(configuration: Configuration, target: str) -> Any:
    """Compile a kernel for a target, as a launch on images would."""
    kernel: Any = KERNELS[configuration.kernel]
    blocks = layout.channel_blocks(configuration.channels)
    constants: dict[str, Any] = {
        "DIMS": 2, "PZ": 1, "PY": PATCH, "PX": PATCH, "C": blocks.count, "CB": blocks.size,
        "L2": True, "COSINE": False, "WIDE": False, "K": configuration.neighbors,
        "TYPE": tl.float64 if configuration.dtype == "float64" else tl.float32,
        "QUERY_MASK": False, "KEY_MASK": False, "KNOWN": False,
        **dict(zip(("TZ", "TY", "TX"), layout.TILES[2], strict=True)),
        "qd": 1, "kd": 1, "nd": 1, "fd": 1,  # a launch folds arguments that are 1
    }  # fmt: skip
    if configuration.kernel == SCAN and configuration.neighbors is not None:
        kept = max(MIN_KEPT, configuration.neighbors + SPARE)
        constants |= {"K": kept, "D": 16, "LANES": seeds.LANES}
    constants |= dict(configuration.constants)
    constants = {name: value for name, value in constants.items() if name in kernel.arg_names}
    signature = {name: "constexpr" if name in constants else type_of(name, configuration) for name in kernel.arg_names}
    source = ASTSource(
        fn=kernel,
        signature=signature,
        constexprs={(kernel.arg_names.index(name),): value for name, value in constants.items()},
        attrs={
            (position,): [["tt.divisibility", 16]]
            for position, name in enumerate(kernel.arg_names)
            if signature[name].startswith("*")
        },
    )
    options = layout.OPTIONS
    if configuration.kernel in ("start", "flood"):
        options = layout.search_options(constants, nvidia=TARGETS[target].backend == "cuda")
    return triton.compile(source, target=TARGETS[target], options=options)


def type_of(name: str, configuration: Configuration) -> str:
    """Return the type of a kernel's argument, in Triton's words."""
    if name in MAP_NAMES or name == "grad_value":
        return f"*{TYPE_NAMES[configuration.dtype]}"
    if configuration.kernel == SCAN and name in ("queries", "keys"):
        return "*fp32"
    if name in ("orders", "positions", "totals") or (configuration.kernel, name) == (SCAN, "out"):
        return "*i64"
    if name in ("seed", "keys", "key_count", "candidates") or (name, configuration.kernel) == ("out_index", "score"):
        return "*i64"
    if name == "index":
        return "*i32" if dict(configuration.constants).get("KNOWN") and configuration.kernel == "score" else "*i64"
    if name in ("in_index", "out_index", "start", "far_end"):
        return "*i32"
    if name.endswith("mask"):
        return "*i1"
    if name in ("in_best", "out_best", "best", "known", "out", "score", "grad", "log_mass", "grad_score", "inverse"):
        return "*fp64" if configuration.dtype == "float64" else "*fp32"
    if name.endswith(("factor", "weight")):
        return "*fp64" if configuration.dtype == "float64" else "*fp32"
    return "i32"


def resources_of(compiled: Any, target: str) -> dict[str, Any]:
    """Return registers per thread, bytes of stack and shared memory, and spills; for NVIDIA also the occupancy."""
    if TARGETS[target].backend == "cuda":
        return nvidia_resources(compiled, target)
    assembly = compiled.asm["amdgcn"]
    found = {
        name: int(re.search(rf"\.{key}:\s+(\d+)", assembly)[1])  # type: ignore[index]
        for name, key in (
            ("registers", "vgpr_count"), ("stack", "private_segment_fixed_size"), ("spills", "vgpr_spill_count")
        )
    }  # fmt: skip
    return {**found, "shared": compiled.metadata.shared}


def nvidia_resources(compiled: Any, target: str) -> dict[str, Any]:
    """Read a cubin's resources with the tools that come with Triton."""
    tools = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()

        def output_of(tool: str, *options: str) -> str:
            command = [str(tools / tool), *options, file.name]
            output: str = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            return output

        match = re.search(r"REG:(\d+) STACK:(\d+)", output_of("cuobjdump", "-res-usage"))
        assert match
        registers, stack = int(match[1]), int(match[2])
        code = output_of("nvdisasm") if stack else ""  # slow, and without a stack there are no spills
    warps = layout.OPTIONS["num_warps"]
    slots = WARP_SLOTS[int(TARGETS[target].arch)]
    per_warp = -(-registers * 32 // 256) * 256  # allocated in units of 256
    return {
        "registers": registers,
        "stack": stack,
        "spills": len(SPILL.findall(code)),
        "inner_spills": sum(len(SPILL.findall(loop)) for loop in inner_loops(code)),
        "shared": compiled.metadata.shared,
        "occupancy": min(slots, REGISTER_FILE // per_warp // warps * warps) / slots,
    }


def inner_loops(code: str) -> list[str]:
    """Return the innermost loops of disassembled code: from a label to a jump back, without another one between."""
    lines = code.splitlines()
    labels = {match[1]: number for number, line in enumerate(lines) if (match := re.match(r"\s*(\.L_x_\d+):", line))}
    jumps = [
        (labels[match[1]], number)
        for number, line in enumerate(lines)
        if (match := re.search(r"\bBRA\S* .*\(?(\.L_x_\d+)", line)) and labels.get(match[1], number) < number
    ]
    inner = [
        (start, end)
        for start, end in jumps
        if not any(start <= other_start and other_end < end for other_start, other_end in jumps)
    ]
    return ["\n".join(lines[start : end + 1]) for start, end in inner]
