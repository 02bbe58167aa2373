"""Functions in fresh processes."""

import json
import os

import pytest
import torch

from psal.measure.process import run_in_fresh_process


def test_a_function_runs_in_a_process_of_its_own() -> None:
    assert run_in_fresh_process(os.getpid) != os.getpid()


def test_arguments_and_result_pass_through_json() -> None:
    assert run_in_fresh_process(json.loads, '{"a": [1, 2.5, "é"]}') == {"a": [1, 2.5, "é"]}


def test_the_thread_count_is_that_of_this_process_or_as_given() -> None:
    assert run_in_fresh_process(torch.get_num_threads) == torch.get_num_threads()
    assert run_in_fresh_process(torch.get_num_threads, threads=3) == 3


def test_printed_lines_do_not_mix_with_the_result() -> None:
    assert run_in_fresh_process(print, "noise") is None


def test_a_failure_names_the_measurement_and_the_reason() -> None:
    with pytest.raises(RuntimeError, match=r"^decoding failed: .*JSONDecodeError"):
        run_in_fresh_process(json.loads, "{", label="decoding")


def test_a_function_of_the_main_script_is_refused() -> None:
    def local() -> None: ...

    local.__module__ = "__main__"
    with pytest.raises(ValueError, match="defined in __main__"):
        run_in_fresh_process(local)
