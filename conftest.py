"""Doctests of the kernels' modules are collected only where Triton is installed: they import it."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("triton") else ["src/psal/ops/triton/*"]
