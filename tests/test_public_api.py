import inspect
from pathlib import Path

import pytest

import psal


def test_public_names_are_the_checked_in_list() -> None:
    """Guards against a name leaving or entering the API by accident: change public_api.txt on purpose."""
    listed = Path(__file__).with_name("public_api.txt").read_text().split()
    assert sorted(psal.__all__) == listed


def test_every_public_name_exists() -> None:
    assert [name for name in psal.__all__ if not hasattr(psal, name)] == []


@pytest.mark.parametrize(
    ("name", "maps"),
    [
        ("patch_match", ["query", "key"]),
        ("exact_match", ["query", "key"]),
        ("patch_attention", ["query", "key", "value"]),
        ("attend", ["matches", "value"]),
        ("aggregate", ["matches", "value"]),
    ],
)
def test_maps_may_be_named_and_options_must_be(name: str, maps: list[str]) -> None:
    parameters = inspect.signature(getattr(psal, name)).parameters.values()
    assert [x.name for x in parameters if x.kind is x.POSITIONAL_OR_KEYWORD] == maps
    assert all(x.kind is x.KEYWORD_ONLY for x in parameters if x.name not in maps)


def test_every_public_name_has_a_docstring() -> None:
    documented = [getattr(psal, name) for name in psal.__all__ if name != "__version__"]
    assert [x.__name__ for x in documented if not inspect.getdoc(x)] == []
