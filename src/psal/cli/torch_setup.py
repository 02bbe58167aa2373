"""Torch's settings for commands that compute for long."""


def set_up_torch(threads: int | None) -> None:
    """Set the number of CPU threads, None for all cores, and treat denormal numbers as 0."""
    import torch

    torch.set_flush_denormal(True)  # denormal weights make matrix products ten times slower
    if threads is not None:
        torch.set_num_threads(threads)
