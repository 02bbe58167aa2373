"""README and documentation pages, and the code blocks in them."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(?P<language>\w+).*\n(?P<code>(?:.*\n)*?)```$", re.MULTILINE)
INLINE_COMMAND = re.compile(r"`(psal [^`]+)`")


@dataclass(frozen=True)
class Block:
    """A fenced code block: its language, its text, and the line of the page it starts at."""

    language: str
    code: str
    line: int


def blocks(page: Path) -> list[Block]:
    """Fenced code blocks of a page, in order."""
    text = page.read_text()
    return [
        Block(match["language"], match["code"], text[: match.start()].count("\n") + 1) for match in BLOCK.finditer(text)
    ]


def printed_commands() -> list[str]:
    """Command lines of all ``console`` blocks, without the prompt and without comments, each once."""
    lines = [
        line.removeprefix("$ ")
        for page in PAGES
        for block in blocks(page)
        if block.language == "console"
        for line in block.code.replace("\\\n", "").splitlines()  # a command may go on in the next line
        if line.startswith("$ ")
    ]
    return list(dict.fromkeys(shlex.join(shlex.split(line, comments=True)) for line in lines))


def mentioned_commands() -> list[str]:
    """``psal`` commands in running text, each once; an ellipsis stands for arguments left out."""
    found = [match[1] for page in PAGES for match in INLINE_COMMAND.finditer(page.read_text())]
    return list(dict.fromkeys(command for command in found if "\n" not in command))
