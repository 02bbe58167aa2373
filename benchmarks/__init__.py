"""How psal's figures are measured; run from the project's folder as ``python -m benchmarks.layer``."""
