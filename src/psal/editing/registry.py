"""The edits by name. The command line, the page, the demo and the sample pictures read this table.

A new edit also needs its name in psal/__init__.py, a sample in data/samples.py, a presenter in cli/demo.py and a
section in app/assets/index.html.

Nothing heavy is imported here, so that ``psal --help`` stays quick: an edit's function is imported on first use.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

MAX_SCALE = 4.0  # of upscale, per side
MAX_EDGE = 1000  # pixels that a mask may grow or fade
SHIFT_MAP_SUFFIX = ".npz"
MODELS = ("patches", "network")
UPSCALE_ATTENTIONS = ("psal1", "psal3", "psal7", "exact")  # of upscale's network
INPAINT_ATTENTIONS = ("own", "psal3", "contextual", "contextual-materialized")  # of inpaint's network


@dataclass(frozen=True)
class Option:
    """A keyword argument that an edit takes besides ``seed`` and ``progress``.

    Attributes:
        name: of the keyword, and of the command-line option.
        default: value if it is not given. Its type is that of the option: a word, a number, or a bool for a switch.
        help: one line for the command line.
        minimum: lower limit of a number; a float must be above it.
        maximum: upper limit of a number.
        choices: the words it may be.
        is_path: whether it names a file.
        length_of: "width" or "height" if it is a length in pixels along this side; the command line also takes percent.
    """

    name: str
    default: float | str | bool | None
    help: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    is_path: bool = False
    length_of: Literal["width", "height"] | None = None


@dataclass(frozen=True)
class Companion:
    """A further picture that an edit may take.

    Attributes:
        name: of the keyword.
        flag: name of the command-line option.
        help: one line for the command line.
    """

    name: str
    flag: str
    help: str


@dataclass(frozen=True)
class Edit:
    """One way to edit a picture.

    Attributes:
        name: of the function, the command, the tab and the sample.
        summary: one line on what it does.
        partner: second picture that it takes: "mask", "reference", or None.
        several_partners: whether it takes a list of them, too.
        options: its further arguments.
        companions: further pictures that it may take.
        shifts: what ``return_shifts=True`` also returns: a "picture" of where each pixel was found, in colors, or a
            "map" that can be applied to other layers; None if there is no such argument.
        device: what the argument ``device`` moves to a GPU: "all" of the edit, or its "network" alone; None if there is
            no such argument, and all runs on the CPU.
    """

    name: str
    summary: str
    partner: Literal["mask", "reference"] | None = None
    options: tuple[Option, ...] = ()
    companions: tuple[Companion, ...] = ()
    shifts: Literal["picture", "map"] | None = None
    several_partners: bool = False
    device: Literal["all", "network"] | None = None

    @property
    def function(self) -> Callable[..., Any]:
        """The function of :mod:`psal.editing`, as ``function(image, partner, …, seed=…, progress=…)``."""
        function: Callable[..., Any] = getattr(import_module(f"psal.editing.{self.name}"), self.name)
        return function


EDITS = {
    edit.name: edit
    for edit in (
        Edit(
            "inpaint",
            "Fill the hole that a mask marks: remove an object, a scratch, a text.",
            "mask",
            (
                Option("model", "patches", "patches (of the photo), or network (with --weights)", choices=MODELS),
                Option("weights", None, "the network's file, of psal train inpaint", is_path=True),
                Option("attention", "own", "attention to put into the network", choices=INPAINT_ATTENTIONS),
                Option("invert", False, "fill what is black in the mask"),
                Option("grow", 0, "pixels by which the hole is grown first", minimum=0, maximum=MAX_EDGE),
                Option("feather", 0, "pixels over which the fill fades into the photo", minimum=0, maximum=MAX_EDGE),
            ),
            (
                Companion("source_mask", "source", "white where patches may be taken from"),
                Companion("guide", "guide", "a rough fill to follow, from another program or a sketch"),
            ),
            shifts="map",
            device="network",
        ),
        Edit(
            "outpaint",
            "Extend a photo beyond its borders.",
            options=(
                Option("left", 0, "pixels or percent to add on the left", length_of="width"),
                Option("right", 0, "on the right", length_of="width"),
                Option("top", 0, "at the top", length_of="height"),
                Option("bottom", 0, "at the bottom", length_of="height"),
            ),
        ),
        Edit(
            "colorize",
            "Color a gray photo with the colors of another one of the same scene.",
            "reference",
            (
                Option("model", "patches", "patches (coarse to fine), or network (the paper's)", choices=MODELS),
                Option("fade", True, "leave a photo gray that shows nothing of the references"),
            ),
            (Companion("hints", "hints", "the photo with colored strokes on it, or strokes on a transparent layer"),),
            several_partners=True,
            device="all",
        ),
        Edit(
            "reconstruct",
            "Rebuild a photo from the pixels of another one.",
            "reference",
            shifts="picture",
            device="all",
        ),
        Edit(
            "upscale",
            "Enlarge a photo, with detail that it shows elsewhere at another size.",
            options=(
                Option("scale", 2.0, "factor per side", minimum=1.0, maximum=MAX_SCALE),
                Option("model", "patches", "patches (of the photo), or network (trained, slower)", choices=MODELS),
                Option("weights", None, "the network's file; by default one that enlarges by 2 or 4", is_path=True),
                Option("attention", "psal3", "attention of the network across scales", choices=UPSCALE_ATTENTIONS),
            ),
            device="all",
        ),
    )
}
