"""Draw the pictures of this folder as SVG: `python docs/pictures.py` writes pictures/*.svg (a test compares them)."""
from __future__ import annotations

import json
import math
from pathlib import Path

from library_pictures import family_pictures
from svg import arrow, box, line, svg, text

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "pictures"
STEPS = HERE.parent / "benchmarks" / "steps.json"

def pipeline() -> str:
    """The stages: what each reads and writes, its command and its folder."""
    forms = ("gemm.toml", "(op …)", "(tensor …)", "(loop …)", "gemm.c", "gemm.so")
    about = ("a spec", "checked, typed", "index notation", "scheduled loops", "C", "a library")
    stages = (("parse", "frontend/"), ("ir", "tensor/"), ("schedule", "schedule/"), ("render", "render/"), ("compile", "runtime/"))
    parts = []
    for n, (form, what) in enumerate(zip(forms, about, strict=True)):
        x = 10 + 158 * n
        parts += [box(x, 40, 98, 44), text(x + 49, 60, form, "mid code"), text(x + 49, 76, what, "mid small")]
    for n, (command, folder) in enumerate(stages):
        x = 108 + 158 * n
        parts += [arrow((x + 1, 62), (x + 59, 62)), text(x + 30, 32, command, "mid"), text(x + 30, 104, folder, "mid small code")]
    return svg("The pipeline of caten: five stages from a spec to a library", 906, 120, parts)


def memory() -> str:
    """A tensor of 3 rows and 4 columns, and its elements in memory in both orders."""
    rows, columns, side = 3, 4, 34
    parts = [text(10, 20, "X[3 4]: 3 rows, 4 columns")]
    for i in range(rows):
        for j in range(columns):
            parts += [box(10 + side * j, 30 + side * i, side, side, ("box", "hot", "warm")[i]), text(27 + side * j, 52 + side * i, f"{i},{j}", "mid small")]
    orders = (("&lt;0 1&gt;, by rows (the default): strides 4 1", [(i, j) for i in range(rows) for j in range(columns)]),
              ("&lt;1 0&gt;, by columns: strides 1 3", [(i, j) for j in range(columns) for i in range(rows)]))
    for n, (title, order) in enumerate(orders):
        y = 30 + 62 * n
        parts.append(f'<text x="190" y="{y - 8}">{title}</text>')
        for k, (i, j) in enumerate(order):
            parts += [box(190 + side * k, y, side, side, ("box", "hot", "warm")[i]), text(207 + side * k, y + 22, f"{i},{j}", "mid small")]
    parts.append(text(190, 146, "address in elements: 0, 1, 2 … from left to right", "small"))
    return svg("Memory order of a tensor: by rows and by columns", 610, 156, parts)


def tiles() -> str:
    """C += A B in three levels: cache block, packed panel, register tile."""
    parts = [text(10, 22, "1. Cache blocks (loops jo, po, io)"), text(320, 22, "2. Packed panels (A_tile, B_tile)"),
             text(630, 22, "3. Register tile (C_part)")]
    # the matrices with the current blocks
    parts += [box(100, 40, 150, 80, "plain"), text(256, 54, "B"), box(145, 60, 60, 30), text(175, 79, "po × jo", "mid small"),
              box(10, 132, 80, 110, "plain"), text(14, 256, "A"), box(34, 160, 30, 40, "warm"), text(49, 183, "io×po", "mid small"),
              box(100, 132, 150, 110, "plain"), text(256, 238, "C"), box(145, 160, 60, 40, "hot"), text(175, 183, "io × jo", "mid small")]
    parts += [arrow((206, 70), (380, 70)), arrow((66, 200), (66, 226), (318, 226), (318, 190), (326, 190)), text(300, 62, "pack", "mid small"),
              text(285, 220, "pack", "small")]
    # the packed panels
    for n in range(4):
        parts.append(box(384 + 34 * n, 40, 30, 62))
    parts += [text(399, 116, "jio", "mid small"), text(384, 136, "each 256 deep (pi), 16 wide (jii)", "small")]
    for n in range(4):
        parts.append(box(330, 150 + 24 * n, 120, 20, "warm"))
    parts += [text(456, 165, "iio", "small"), text(330, 262, "each 6 high (iii), 256 deep (pi)", "small")]
    # the register tile
    for lane in range(16):
        parts.append(box(674 + 11 * lane, 44, 11, 18))
    for row in range(6):
        parts.append(box(640, 84 + 22 * row, 18, 18, "warm"))
        parts += [box(674 + 88 * v, 84 + 22 * row, 88, 18, "hot") for v in range(2)]
    parts += [text(856, 58, "one row of a panel of B"), text(856, 152, "6 rows × 2 vectors"), text(856, 168, "of 8 lanes stay"), text(856, 184, "in registers"),
              text(632, 234, "6 elements of A, each broadcast", "small"), text(632, 252, "pi runs 256 times: 12 FMAs each time", "small")]
    parts += [arrow((518, 70), (668, 54)), arrow((452, 190), (634, 150))]
    return svg("The three levels of a tiled matrix product", 1010, 276, parts)


def vectors() -> str:
    """A loop over N = 21 elements as vectors of 8 lanes and a masked tail."""
    side, count, lanes = 24, 21, 8
    parts = [text(10, 20, "N = 21, vectors of 8 lanes: (split i 8), (vectorize ii)")]
    for n in range(24):
        kind = ("box" if n // lanes % 2 == 0 else "warm") if n < 16 else "hot" if n < count else "plain dash"
        parts.append(box(10 + side * n, 34, side, side, kind))
        parts.append(text(22 + side * n, 50, str(n) if n < count else "–", "mid small"))
    for n, label in enumerate(("io = 0", "io = 1", "tail: lanes 21 to 23 are masked")):
        x = 10 + side * lanes * n
        parts += [line(x + 3, 66, x + side * lanes - 3, 66), text(x + side * lanes / 2, 82, label, "mid small")]
    parts += [text(10, 106, "io runs ⌊N / 8⌋ times on whole vectors. The tail runs at most once: its mask keeps loads and stores inside the array.", "small")]
    return svg("A vector loop and its masked tail", 690, 118, parts)


# Of each step of benchmarks/steps.py: bytes that its innermost loop moves between caches and registers for one multiply-add of 2 operations.
BYTES = (8.0, 12.0, 12.0, 160 / 256, 160 / 256, 160 / 256)
PEAK = 219.0                             # GFLOP/s on one thread of that machine, docs/performance-intel.md
TRIAD = 16.3                             # GB/s


def roofline() -> str:
    """The steps from the naive gemm to the packed one: rate over the operations for each byte that the inner loop moves."""
    seconds, size = json.loads(STEPS.read_text())["seconds"], json.loads(STEPS.read_text())["size"]

    def at(intensity: float, rate: float) -> tuple[float, float]:
        return 60 + 150 * (math.log2(intensity) + 4) / 2, 300 - 110 * math.log10(rate)

    parts = [arrow((60, 300), (60, 22)), arrow((60, 300), (660, 300)), text(66, 20, "GFLOP/s"),
             text(340, 340, "operations for each byte loaded or stored by the innermost loop", "mid small")]
    for rate in (1, 10, 100):
        y = at(1, rate)[1]
        parts += [line(56, y, 60, y), text(50, y + 4, str(rate), "small"), line(60, y, 650, y, "dash")]
    for exponent in range(-4, 4, 2):
        x = at(2.0 ** exponent, 1)[0]
        label = f"1/{2 ** -exponent}" if exponent < 0 else str(2 ** exponent)
        parts += [line(x, 300, x, 304), text(x, 318, label, "mid small")]
    corner = PEAK / TRIAD
    (x0, y0), (x1, y1) = at(1 / 16, TRIAD / 16), at(corner, PEAK)
    parts += [line(x0, y0, x1, y1), line(60, y1, x1, y1), text(66, y1 - 6, f"peak arithmetic: {PEAK:g} GFLOP/s"),
              text(x0 + 226, y0 - 76, f"from memory: {TRIAD:g} GB/s (points above this line: caches)", "small")]
    labels = ("0 as written", "1 loops in memory order", "2 explicit vectors", "3 register tile", "4 packed panels", "5 FMA")
    moved = ((10, 4), (10, -4), (10, 14), (10, 4), (10, 4), (10, 4))
    for moved_bytes, taken, label, (dx, dy) in zip(BYTES, seconds, labels, moved, strict=False):
        x, y = at(2 / moved_bytes, 2 * size ** 3 / taken / 1e9)
        parts += [f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4"/>', f'<text class="small" x="{x + dx:.1f}" y="{y + dy:.1f}">{label}</text>']
    return svg("A roofline of the steps from the naive gemm to the packed one", 680, 350, parts)


PICTURES = {"pipeline": pipeline, "memory-order": memory, "gemm-tiles": tiles, "vector-tail": vectors, "roofline": roofline, **family_pictures()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, picture in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(picture())
