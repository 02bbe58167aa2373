"""Draw the schematics of the documentation as SVG: ``python docs/figures/schematics.py``."""

from collections.abc import Iterable
from pathlib import Path

IMAGES = Path(__file__).parents[1] / "images"
INK, FAINT, BLUE, ORANGE, GREEN = "#37474f", "#b0bec5", "#3f51b5", "#e65100", "#2e7d32"
PALE = {BLUE: "#e8eaf6", ORANGE: "#fff3e0", GREEN: "#e8f5e9", INK: "#eceff1"}
Point = tuple[float, float]


class Drawing:
    """SVG elements on a canvas of a given size, in pixels."""

    def __init__(self, width: int, height: int) -> None:
        self.size = width, height
        self.parts: list[str] = []

    def text(self, at: Point, text: str, *, size: int = 14, color: str = INK, anchor: str = "middle") -> None:
        for line, row in enumerate(text.split("\n")):
            y = at[1] + line * size * 1.3
            self.parts.append(
                f'<text x="{at[0]:g}" y="{y:g}" font-size="{size}" fill="{color}" text-anchor="{anchor}">{row}</text>'
            )

    def box(self, corner: Point, size: Point, text: str = "", color: str = BLUE) -> None:
        (x, y), (width, height) = corner, size
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" '
            f'fill="{PALE[color]}" stroke="{color}"/>'
        )
        lines = text.split("\n")
        top = y + height / 2 + 5 - (len(lines) - 1) * 14 * 1.3 / 2
        self.text((x + width / 2, top), text, color=color)

    def grid(self, corner: Point, columns: int, rows: int, cell: float, fills: dict[tuple[int, int], str]) -> None:
        """Cells of a pixel grid; ``fills`` are colors by (column, row)."""
        left, top = corner
        for (column, row), fill in fills.items():
            self.parts.append(
                f'<rect x="{left + column * cell:g}" y="{top + row * cell:g}" width="{cell:g}" height="{cell:g}" '
                f'fill="{fill}"/>'
            )
        across = [f"M {left:g} {top + row * cell:g} h {columns * cell:g}" for row in range(rows + 1)]
        down = [f"M {left + column * cell:g} {top:g} v {rows * cell:g}" for column in range(columns + 1)]
        self.parts.append(f'<path d="{" ".join(across + down)}" fill="none" stroke="{FAINT}"/>')

    def frame(self, corner: Point, size: Point, color: str, *, dashed: bool = False) -> None:
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<rect x="{corner[0]:g}" y="{corner[1]:g}" width="{size[0]:g}" height="{size[1]:g}" fill="none" '
            f'stroke="{color}" stroke-width="2.5"{dash}/>'
        )

    def arrow(self, points: Iterable[Point], color: str = INK, *, dashed: bool = False) -> None:
        path = " L ".join(f"{x:g} {y:g}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<path d="M {path}" fill="none" stroke="{color}" stroke-width="1.8"{dash} '
            f'marker-end="url(#head-{color[1:]})"/>'
        )

    def write(self, name: str) -> None:
        heads = "".join(
            f'<marker id="head-{color[1:]}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            f'orient="auto-start-reverse"><path d="M 0 0 L 10 5 L 0 10 z" fill="{color}"/></marker>'
            for color in (INK, FAINT, BLUE, ORANGE, GREEN)
        )
        width, height = self.size
        body = "\n".join(self.parts)
        (IMAGES / name).write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'font-family="Helvetica, Arial, sans-serif">\n<defs>{heads}</defs>\n{body}\n</svg>\n'
        )


def middle(corner: Point, column: int, row: int, cell: float) -> Point:
    """Center of a cell of a grid."""
    return corner[0] + (column + 0.5) * cell, corner[1] + (row + 0.5) * cell


def overview() -> None:
    """From the maps to the output."""
    d = Drawing(980, 250)
    d.box((10, 20), (110, 56), "key")
    d.box((160, 20), (150, 56), "16 coefficients\nper patch")
    d.box((350, 20), (150, 56), "kd-tree,\nleaves of ≈ 64 keys")
    d.box((10, 110), (110, 56), "query", ORANGE)
    d.box((160, 110), (150, 56), "16 coefficients\nper patch", ORANGE)
    d.box((350, 110), (150, 56), "forward sweep:\nseed, propagate", ORANGE)
    d.box((540, 110), (150, 56), "backward sweep:\npropagate", ORANGE)
    d.box((730, 110), (110, 56), "Matches:\nindex, score", ORANGE)
    d.box((730, 186), (110, 46), "value", GREEN)
    d.box((870, 120), (100, 96), "attend\nor\naggregate", GREEN)
    for x in (120, 310):
        d.arrow([(x, 48), (x + 40, 48)], BLUE)
        d.arrow([(x, 138), (x + 40, 138)], ORANGE)
    d.arrow([(425, 76), (425, 110)], BLUE)
    d.arrow([(65, 76), (65, 92), (325, 92), (325, 126), (350, 126)], BLUE, dashed=True)
    d.arrow([(500, 138), (540, 138)], ORANGE)
    d.arrow([(690, 138), (730, 138)], ORANGE)
    d.arrow([(840, 138), (870, 138)], ORANGE)
    d.arrow([(840, 209), (870, 209)], GREEN)
    d.text((615, 62), "coefficients choose candidates,", size=13)
    d.text((615, 80), "full patch distances decide", size=13)
    d.write("search_overview.svg")


def seeding() -> None:
    """A patch becomes 16 coefficients; the tree returns a leaf of similar keys."""
    d = Drawing(980, 250)
    fills = {(x, y): "#c5cae9" for x in range(1, 6) for y in range(1, 6)}
    d.grid((20, 60), 7, 7, 16, fills | {(3, 3): BLUE})
    d.text((76, 45), "patch, p × p × C")
    d.text((76, 196), "around each pixel", size=12)
    d.arrow([(140, 116), (180, 116)])
    for channel in range(4):
        d.grid((190 + 9 * channel, 62 + 9 * channel), 4, 4, 16, {(x, y): "#e8eaf6" for x in range(4) for y in range(4)})
    d.text((235, 45), "4 principal channels")
    d.arrow([(295, 116), (335, 116)])
    low = {(u, v): "#9fa8da" for u in range(4) for v in range(4) if u + v <= 3}
    d.grid((345, 72), 6, 6, 15, low)
    d.text((390, 45), "cosine transform,\nu + v ≤ 3")
    d.text((390, 184), "10 frequencies\nper channel", size=12)
    d.arrow([(445, 116), (485, 116)])
    d.grid((495, 60), 1, 16, 7, {(0, i): BLUE for i in range(16)})
    d.text((510, 45), "16 coefficients")
    d.text((500, 196), "one cache line", size=12)
    d.arrow([(520, 116), (560, 116)])
    nodes = {(0, 0): (690, 60), (1, 0): (630, 105), (1, 1): (750, 105)}
    nodes |= {(2, i): (600 + 60 * i, 150) for i in range(4)}
    path = {(0, 0), (1, 1), (2, 2)}
    for (depth, i), (x, y) in nodes.items():
        for child in ((depth + 1, 2 * i), (depth + 1, 2 * i + 1)):
            if child in nodes:
                d.parts.append(
                    f'<line x1="{x}" y1="{y}" x2="{nodes[child][0]}" y2="{nodes[child][1]}" '
                    f'stroke="{ORANGE if child in path else FAINT}" stroke-width="{2.5 if child in path else 1.5}"/>'
                )
    for place, (x, y) in nodes.items():
        color = ORANGE if place in path else FAINT
        d.parts.append(f'<circle cx="{x}" cy="{y}" r="9" fill="#ffffff" stroke="{color}" stroke-width="2"/>')
    d.text((690, 40), "kd-tree of the key's patches")
    d.text((690, 190), "a query descends to one leaf", size=12, color=ORANGE)
    d.arrow([(735, 150), (815, 150)], ORANGE)
    d.box((825, 100), (145, 90), "k best of the leaf's\n≈ 64 keys, 16\ncompared at once", ORANGE)
    d.write("search_seeding.svg")


def propagation() -> None:
    """A neighbor's match, shifted by one pixel, is a candidate."""
    d = Drawing(700, 285)
    cell = 20
    left, right, top = 40, 420, 50
    d.text((left + 4.5 * cell, 36), "query")
    d.text((right + 6 * cell, 36), "key")
    d.grid((left, top), 9, 9, cell, {(4, 4): "#ffcc80", (3, 4): "#c5cae9", (4, 3): "#c8e6c9"})
    d.grid((right, top), 12, 9, cell, {(7, 5): "#c5cae9", (8, 5): "#ffe0b2", (3, 2): "#c8e6c9", (3, 3): "#ffe0b2"})
    d.arrow([middle((left, top), 3, 4, cell), middle((right, top), 7, 5, cell)], BLUE)
    d.arrow([middle((left, top), 4, 3, cell), middle((right, top), 3, 2, cell)], GREEN)
    d.arrow([middle((right, top), 7, 5, cell), (right + 8.9 * cell, top + 5.5 * cell)], ORANGE)
    d.arrow([middle((right, top), 3, 2, cell), (right + 3.5 * cell, top + 3.9 * cell)], ORANGE)
    d.text((left + 4.5 * cell, top + 4.75 * cell), "i", color=ORANGE)
    d.text((left, top + 9 * cell + 24), "left and upper neighbors of i are done", size=12, anchor="start")
    d.text((right, top + 9 * cell + 24), "candidates of i: their matches,", size=12, anchor="start", color=ORANGE)
    d.text((right, top + 9 * cell + 40), "one pixel to the right and one down", size=12, anchor="start", color=ORANGE)
    d.write("search_propagation.svg")


def jump_flooding() -> None:
    """Neighbors at distance 1, 2, 4 and 8, then draws in windows that halve."""
    d = Drawing(740, 340)
    cell, center = 15, 8
    shades = {1: "#3f51b5", 2: "#7986cb", 4: "#9fa8da", 8: "#c5cae9"}
    fills = {(center, center): "#ffcc80"}
    for jump, shade in shades.items():
        for dx, dy in ((jump, 0), (-jump, 0), (0, jump), (0, -jump)):
            fills[center + dx, center + dy] = shade
    d.text((40 + 8.5 * cell, 30), "query: whose match is tried")
    d.grid((40, 45), 17, 17, cell, fills)
    for row, (jump, shade) in enumerate(shades.items()):
        d.parts.append(f'<rect x="312" y="{90 + 24 * row}" width="13" height="13" fill="{shade}"/>')
        d.text((332, 101 + 24 * row), f"jump {jump}", size=12, anchor="start")
    d.text((425 + 8.5 * cell, 30), "key: where random draws go")
    d.grid((440, 45), 17, 17, cell, {(10, 6): "#ffcc80"})
    x, y = 440 + 10.5 * cell, 45 + 6.5 * cell
    for radius in (8, 4, 2, 1):
        half = (radius + 0.5) * cell
        west, north = max(440.0, x - half), max(45.0, y - half)
        east, south = min(440 + 17 * cell, x + half), min(45 + 17 * cell, y + half)
        d.frame((west, north), (east - west, south - north), ORANGE, dashed=radius > 1)
    d.text((440 + 8.5 * cell, 322), "one draw per window; windows halve around the best match", size=12)
    d.write("search_jump_flooding.svg")


def aggregation() -> None:
    """Every pixel of the window votes with its own match, shifted back."""
    d = Drawing(700, 285)
    cell, top, left, right = 20, 50, 40, 420
    d.text((left + 4.5 * cell, 36), "query")
    d.text((right + 6 * cell, 36), "value, on the key's grid")
    d.grid((left, top), 9, 9, cell, {(4, 4): "#ffcc80", (5, 3): "#c5cae9", (3, 5): "#c8e6c9"})
    d.frame((left + 3 * cell, top + 3 * cell), (3 * cell, 3 * cell), ORANGE)
    d.grid((right, top), 12, 9, cell, {(9, 2): "#c5cae9", (8, 3): "#ffe0b2", (3, 6): "#c8e6c9", (4, 5): "#ffe0b2"})
    d.arrow([middle((left, top), 5, 3, cell), middle((right, top), 9, 2, cell)], BLUE)
    d.arrow([middle((left, top), 3, 5, cell), middle((right, top), 3, 6, cell)], GREEN)
    d.arrow([middle((right, top), 9, 2, cell), middle((right, top), 8, 3, cell)], ORANGE)
    d.arrow([middle((right, top), 3, 6, cell), middle((right, top), 4, 5, cell)], ORANGE)
    d.text((left + 4.5 * cell, top + 4.75 * cell), "i", color=ORANGE)
    d.text((left, top + 9 * cell + 24), "window of i; two of its pixels, i + δ", size=12, anchor="start")
    d.text((right, top + 9 * cell + 24), "their matches ψ(i + δ), shifted back by δ,", size=12, anchor="start")
    d.text((right, top + 9 * cell + 40), "are neighbors of i", size=12, anchor="start", color=ORANGE)
    d.write("aggregation.svg")


if __name__ == "__main__":
    for draw in (overview, seeding, propagation, jump_flooding, aggregation):
        draw()
