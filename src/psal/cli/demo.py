"""The command ``psal demo``: every edit on its sample picture, and one contact sheet of them all."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from psal.cli.console import errors_as_messages, say
from psal.cli.options import AUTO_HELP, DeviceName, Seed

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image

    from psal.data.samples import Sample

SCALE = 2  # of upscale
EXTEND = 4  # of outpaint: a fraction of the side, as a denominator
CELL, MARGIN, LABEL_HEIGHT = 400, 10, 26  # of the contact sheet, in pixels


@dataclass(frozen=True)
class Result:
    """One edit of a sample: labeled pictures, the time it took, and a measured remark."""

    edit: str
    pictures: "list[tuple[str, NDArray[Any]]]"
    seconds: float
    remark: str


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="folder to write to")] = Path("demo"),
    seed: Seed = 0,
    device: Annotated[
        DeviceName, typer.Option(help=f"where to colorize, reconstruct and upscale; {AUTO_HELP}")
    ] = "auto",
) -> None:
    """Run every edit on its sample picture; write the pictures and a contact sheet."""
    with errors_as_messages():
        import numpy as np
        import torch

        from psal.data.samples import samples
        from psal.devices import choose_device
        from psal.io.atomic import check_folder_is_writable
        from psal.io.photo import Photo

        chosen = choose_device(device).type
        check_folder_is_writable(out)
        results = []
        say(f"threads: {torch.get_num_threads()}, device: {chosen}\n{'edit':12} {'size':>10} {'seconds':>8}  result")
        for sample in samples():
            result = run(sample, seed, chosen)
            results.append(result)
            height, width = sample.picture.shape[:2]
            say(f"{result.edit:12} {f'{width} × {height}':>10} {result.seconds:8.2f}  {result.remark}")
            for label, pixels in result.pictures:
                name = f"{result.edit}_{label}".replace(",", "").replace(" ", "_")
                Photo(pixels).save(out / f"{name}.png")
        Photo(np.asarray(contact_sheet(results))).save(out / "contact_sheet.png")
        say(f"\nall of them in one picture: {out / 'contact_sheet.png'}")


def run(sample: "Sample", seed: int, device: str) -> Result:
    """Edit one sample, on a device where the edit runs there."""
    from psal.editing.registry import EDITS

    edit = EDITS[sample.edit]
    pictures = [sample.picture] if sample.partner is None else [sample.picture, sample.partner]
    options: dict[str, Any] = {"return_shifts": True} if edit.shifts == "picture" else {}
    options |= {"device": device} if edit.device == "all" else {}
    options |= {option.name: SCALE for option in edit.options if option.name == "scale"}
    if sample.edit == "outpaint":
        height, width = sample.picture.shape[:2]
        options |= {"left": width // EXTEND, "right": width // EXTEND, "top": height // EXTEND}
    start = time.perf_counter()
    made = edit.function(*pictures, **options, seed=seed)
    seconds = time.perf_counter() - start
    shown, remark = PRESENTERS[sample.edit](sample, made)
    return Result(sample.edit, shown, seconds, remark)


# Each of these takes the sample and what the edit returned; it returns labeled pictures and a remark.


def _present_inpaint(sample: "Sample", filled: Any) -> "tuple[list[tuple[str, NDArray[Any]]], str]":
    assert sample.partner is not None
    hole = sample.partner > 127
    with_hole = sample.picture.copy()
    with_hole[hole] = 255
    kept = bool((filled == sample.picture)[~hole].all())
    remark = f"{int(hole.sum()):,} pixels filled, all others unchanged: {kept}"
    return [("photograph", sample.picture), ("hole", with_hole), ("filled", filled)], remark


def _present_outpaint(sample: "Sample", wider: Any) -> "tuple[list[tuple[str, NDArray[Any]]], str]":
    height, width = sample.picture.shape[:2]
    left, top = width // EXTEND, height // EXTEND
    kept = bool((wider[top : top + height, left : left + width] == sample.picture).all())
    canvas = 255 + 0 * wider
    canvas[top : top + height, left : left + width] = sample.picture
    remark = f"{wider.shape[1]} × {wider.shape[0]} pixels, the photograph in it unchanged: {kept}"
    return [("photograph", canvas), ("extended", wider)], remark


def _present_colorize(sample: "Sample", colored: Any) -> "tuple[list[tuple[str, NDArray[Any]]], str]":
    from psal.data.samples import samples

    assert sample.partner is not None
    truth = next(other.picture for other in samples() if other.edit == "reconstruct")  # the same view, in color
    gain = _square_error(sample.picture[..., None], truth) / _square_error(colored, truth)
    pictures = [("gray photograph", sample.picture), ("reference", sample.partner), ("colored", colored)]
    return pictures, f"square error {gain:.1f} times below the gray picture's"


def _present_reconstruct(sample: "Sample", made: Any) -> "tuple[list[tuple[str, NDArray[Any]]], str]":
    rebuilt, shifts = made
    pictures = [("left view", sample.picture), ("rebuilt from the right view", rebuilt), ("shifts", shifts)]
    return pictures, f"mean square error {_square_error(rebuilt, sample.picture):.5f}"


def _present_upscale(sample: "Sample", large: Any) -> "tuple[list[tuple[str, NDArray[Any]]], str]":
    bicubic = _resized(sample.picture, large.shape[:2])
    errors = [_square_error(_resized(x, sample.picture.shape[:2]), sample.picture) for x in (large, bicubic)]
    nearest = sample.picture.repeat(SCALE, 0).repeat(SCALE, 1)
    pictures = [("photograph, part", nearest), ("bicubic, twice", bicubic), ("enlarged, twice", large)]
    remark = f"square error after halving again {errors[0]:.6f}, bicubic {errors[1]:.6f}"
    return [(label, _center(x)) for label, x in pictures], remark


PRESENTERS = {
    "inpaint": _present_inpaint,
    "outpaint": _present_outpaint,
    "colorize": _present_colorize,
    "reconstruct": _present_reconstruct,
    "upscale": _present_upscale,
}


def contact_sheet(results: list[Result]) -> "Image":
    """All pictures with their labels, one edit per row."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(size=18)
    rows = []
    for result in results:
        cells: list[tuple[str, Image.Image]] = []
        for label, pixels in result.pictures:
            image = Image.fromarray(pixels).convert("RGB")
            if max(image.size) <= CELL // 2:  # a crop in which single pixels are to be seen
                image = image.resize((2 * image.width, 2 * image.height), Image.Resampling.NEAREST)
            image.thumbnail((CELL, CELL), Image.Resampling.LANCZOS)
            cells.append((f"{result.edit}: {label}" if not cells else label, image))
        rows.append(cells)
    heights = [max(image.height for _, image in row) + LABEL_HEIGHT + MARGIN for row in rows]
    sheet = Image.new("RGB", (max(map(len, rows)) * (CELL + MARGIN) + MARGIN, sum(heights) + MARGIN), "white")
    draw = ImageDraw.Draw(sheet)
    top = MARGIN
    for row, height in zip(rows, heights, strict=True):
        for column, (label, image) in enumerate(row):
            left = MARGIN + column * (CELL + MARGIN)
            draw.text((left, top), label, fill="black", font=font)
            sheet.paste(image, (left, top + LABEL_HEIGHT))
        top += height
    return sheet


def _square_error(a: "NDArray[Any]", b: "NDArray[Any]") -> float:
    """Mean square error of values in 0..1."""
    return float(((a / 255.0 - b / 255.0) ** 2).mean())


def _resized(pixels: "NDArray[Any]", size: tuple[int, ...]) -> "NDArray[Any]":
    import numpy as np
    from PIL import Image

    return np.asarray(Image.fromarray(pixels).resize((size[1], size[0]), Image.Resampling.BICUBIC))


def _center(pixels: "NDArray[Any]") -> "NDArray[Any]":
    """Central half of a picture, where upscaling shows."""
    height, width = pixels.shape[:2]
    return pixels[height // 4 : height * 3 // 4, width // 4 : width * 3 // 4]
