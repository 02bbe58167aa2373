"""Pictures as files and in memory, and atomic writes."""
