"""Examples in README and documentation run as they are printed."""

import contextlib
import doctest
import re
import shlex
import tomllib
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import typer
from support.pages import PAGES, ROOT, blocks, mentioned_commands, printed_commands
from typer.testing import CliRunner

from psal.app.openapi import describe_api
from psal.cli.main import app

QUICK = ("inpaint", "outpaint", "colorize", "reconstruct", "upscale", "samples")
PSAL = [command for command in printed_commands() if command.startswith("psal ")]
OTHER = [command for command in printed_commands() if not command.startswith("psal ")]


@pytest.fixture(scope="module")
def samples_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which ``psal samples samples`` has run."""
    folder = tmp_path_factory.mktemp("examples")
    with contextlib.chdir(folder):
        assert CliRunner().invoke(app, ["samples", "samples"]).exit_code == 0
    return folder


def find_command(words: list[str]) -> tuple[Any, list[str]]:
    """The command that some words name, and the words left for it."""
    command: Any = typer.main.get_command(app)
    while words and hasattr(command, "commands"):
        name, *words = words
        assert name in command.commands, f"psal has no command {name!r}, only {', '.join(command.commands)}"
        command = command.commands[name]
    return command, words


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_python_examples_run(page: Path, samples_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(samples_folder)
    namespace: dict[str, Any] = {}
    for block in blocks(page):
        if block.language == "python":
            exec(compile("\n" * block.line + block.code, page, "exec"), namespace)
        elif block.language == "pycon":
            test = doctest.DocTestParser().get_doctest(block.code, namespace, page.name, str(page), block.line)
            assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, clear_globs=False).failed == 0


@pytest.mark.parametrize("command", [command for command in PSAL if command.split()[1] in QUICK])
def test_quick_commands_run(
    command: str, samples_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if command.split()[1] != "samples":
        (tmp_path / "samples").symlink_to(samples_folder / "samples")
    outcome = CliRunner().invoke(app, shlex.split(command)[1:])
    assert outcome.exit_code == 0, outcome.output
    assert len(list(tmp_path.iterdir())) >= 1


@pytest.mark.parametrize("command", dict.fromkeys([*PSAL, *mentioned_commands()]))
def test_commands_and_options_exist(command: str) -> None:
    found, words = find_command([word for word in shlex.split(command)[1:] if word != "…"])
    known = {flag for parameter in found.params for flag in parameter.opts} | {"--help"}
    assert {word for word in words if word.startswith("-")} <= known


@pytest.mark.parametrize("command", OTHER)
def test_other_commands_name_what_exists(command: str) -> None:
    program, *arguments = shlex.split(command)
    if program == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert {word for word in arguments if "=" not in word} <= set(targets)
    elif program == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        wanted = re.findall(r"\[([\w,]+)\]", command)
        assert {extra for group in wanted for extra in group.split(",")} <= set(extras)
    elif program == "curl":
        operation = describe_api()["paths"][urlsplit(arguments[-1]).path]["post"]
        form = operation["requestBody"]["content"]["multipart/form-data"]["schema"]
        given = {word.partition("=")[0] for flag, word in pairwise(arguments) if flag == "-F"}
        assert set(form["required"]) <= given <= set(form["properties"])
    elif program == "python":
        assert arguments[0] == "-m", f"no test knows how to check {command!r}"
        assert find_spec(arguments[1]) is not None
    else:
        assert program.startswith(".venv/bin/"), f"no test knows how to check {command!r}"
