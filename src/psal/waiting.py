"""How threads wait for each other."""

import os


def let_threads_sleep() -> None:
    """Let OpenMP's threads sleep while they wait, unless the environment says otherwise.

    Threads that spin take the cores from other processes. OpenMP reads the variable when torch is loaded, so call this
    before.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
