"""Training of networks: one loop for all tasks, and a small file for each task."""
