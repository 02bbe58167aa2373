import inspect
from pathlib import Path

import psal


def test_public_names_are_the_checked_in_list() -> None:
    """Guards against a name leaving or entering the API by accident: change public_api.txt on purpose."""
    listed = Path(__file__).with_name("public_api.txt").read_text().split()
    assert sorted(psal.__all__) == listed


def test_every_public_name_exists() -> None:
    assert [name for name in psal.__all__ if not hasattr(psal, name)] == []


def test_every_public_name_has_a_docstring() -> None:
    documented = [getattr(psal, name) for name in psal.__all__ if name != "__version__"]
    assert [x.__name__ for x in documented if not inspect.getdoc(x)] == []
