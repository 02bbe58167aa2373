"""The measuring harness: fresh processes, peak memory, timing, machine information and JSON records.

Both ``psal bench`` and the project's ``benchmarks`` folder use it.
"""
