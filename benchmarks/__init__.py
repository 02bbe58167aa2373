"""Benchmarks of psal against other software; run from the project's folder as ``python -m benchmarks.layer``."""
