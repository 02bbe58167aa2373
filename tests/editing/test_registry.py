"""The registry against the functions it names."""

import inspect

import pytest

import psal
from psal.editing.registry import EDITS, Edit


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_entry_names_a_public_function_that_takes_its_arguments(edit: Edit) -> None:
    assert edit.function is getattr(psal, edit.name)
    parameters = inspect.signature(edit.function).parameters
    expected = {"image", "seed", "progress", *(option.name for option in edit.options)}
    expected |= {edit.partner} if edit.partner else set()
    expected |= {companion.name for companion in edit.companions}
    expected |= {"return_shifts"} if edit.shifts else set()
    expected |= {"device"} if edit.device else set()
    expected |= {"variants"} if edit.partner == "mask" else set()
    assert set(parameters) == expected
