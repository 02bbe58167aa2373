"""One way to measure: time, peak memory, the machine, and a JSON file."""
