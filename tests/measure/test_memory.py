"""Peak memory of a piece of code."""

import os

import torch

from psal.measure.memory import memory_of_tree, peak_of, peak_of_process
from psal.measure.process import run_in_fresh_process

BLOCK = 64 * 2**20


def allocate() -> None:
    torch.ones(BLOCK // 4)


def test_the_peak_contains_a_block_that_is_freed_again() -> None:
    assert 0.9 * BLOCK < peak_of(allocate, torch.device("cpu")) < 1.5 * BLOCK


def test_the_peak_of_the_process_is_in_bytes() -> None:
    assert 50e6 < peak_of_process() < 100e9


def test_the_peak_of_a_process_leaves_out_what_its_parent_held() -> None:
    held = torch.ones(4 * BLOCK)  # 1 GB
    assert run_in_fresh_process(peak_of_process) < held.nbytes


def test_the_memory_of_a_process_tree_is_part_of_its_peak() -> None:
    assert memory_of_tree(os.getpid()) > 1e6
