"""Training: one loop for all tasks, one small file per task."""
