"""Draw results as SVG: a roofline with one numbered point per row, and below it one labelled bar per row."""
from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

from .limits import Limits
from .results import BenchResults, BenchRow, spelled

WIDTH, MARGIN = 900, 24
LABELS, NUMBERS = 330, 210              # widths of the columns left and right of the bars, in pixels
BAR, GAP, GROUP = 14, 5, 9              # height of a bar, space below it, extra space below a group
ROOF_HEIGHT = 330
COLOURS = ("#3b6fb6", "#d9822b", "#4a9a6b", "#a05195", "#c0504d", "#6b7a8f")
CUT = 1.2                               # longest bar, as a share of the limit; data in a cache may exceed it
LIGHT = {"text": "#24292f", "soft": "#57606a", "grid": "#d8dee4", "back": "#ffffff"}
DARK = {"text": "#e6edf3", "soft": "#9198a1", "grid": "#30363d", "back": "#0d1117"}
STYLE = """
  text { font: 12px "DejaVu Sans", system-ui, sans-serif } .title { font-size: 15px; font-weight: bold }
  .number { font-size: 10px; font-weight: bold } .end { text-anchor: end } .middle { text-anchor: middle }
  .grid { stroke-width: 1 } .roof { stroke-width: 2; fill: none } .whisker { stroke-width: 1.2 }
"""


def themed(colours: dict[str, str]) -> str:
    """The CSS rules for the colours of text, secondary text, grid and background."""
    return (f"text {{ fill: {colours['text']} }} .soft {{ fill: {colours['soft']} }} .back "
            f"{{ fill: {colours['back']} }} "
            f".grid {{ stroke: {colours['grid']} }} .roof, .whisker {{ stroke: {colours['text']} }} .number "
            f"{{ fill: #ffffff }}")


def drawn(results: BenchResults) -> str:
    """The SVG text. It has no roofline if the machine's limits are unknown or no row has floating-point operations."""
    colours = dict(zip(dict.fromkeys([row.runtime for row in results.rows]), COLOURS * len(results.rows), strict=False))
    parts, y = _heading(results, colours)
    if results.limits and any(row.flops for row in results.rows):
        parts += _roofline(results.rows, results.limits, colours, y)
        y += ROOF_HEIGHT
    bars, y = _bars(results, colours, y)
    style = f"{STYLE}  {themed(LIGHT)}\n  @media (prefers-color-scheme: dark) {{ {themed(DARK)} }}\n"
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y:.0f}" viewBox="0 0 {WIDTH} '
                      f'{y:.0f}">',
                      f"<style>{style}</style>", f'<rect class="back" width="{WIDTH}" height="{y:.0f}"/>', *parts,
                      *bars, "</svg>", ""])


def _heading(results: BenchResults, colours: dict[str, str]) -> tuple[list[str], float]:
    """The machine, its limits and the legend of the runtimes; and the height of all that."""
    lines = [_text(MARGIN, 34, str(results.machine.get("cpu", "")), "title")]
    if results.limits:
        lines.append(_text(MARGIN, 54, results.limits.line(), "soft"))
    x = float(MARGIN)
    for name, colour in colours.items():
        lines += [f'<rect x="{x:.1f}" y="67" width="10" height="10" rx="2" fill="{colour}"/>', _text(x + 15, 76, name)]
        x += 35 + 7.5 * len(name)
    return lines, 92.0


def _roofline(rows: Sequence[BenchRow], limits: Limits, colours: dict[str, str], top: float) -> list[str]:
    """FLOP/s against arithmetic intensity (FLOP per byte), both axes logarithmic."""
    counted = [(n, row.flops / row.bytes, row.flops / row.seconds.value, row)
               for n, row in enumerate(rows, 1) if row.flops and row.bytes]
    ridge = limits.flops / limits.bandwidth
    left, right = _decades([x for _, x, _, _ in counted] + [ridge / 4, ridge * 4])
    low, high = _decades([y for _, _, y, _ in counted] + [limits.flops])
    box = (MARGIN + 62.0, top + 14, WIDTH - MARGIN - 12.0, top + ROOF_HEIGHT - 64)

    def at(intensity: float, rate: float) -> tuple[float, float]:
        across = (math.log10(intensity) - left) / (right - left)
        up = (math.log10(rate) - low) / (high - low)
        return box[0] + across * (box[2] - box[0]), box[3] - up * (box[3] - box[1])

    parts = []
    for d in range(left, right + 1):
        x, _ = at(10.0 ** d, 10.0 ** low)
        parts += [_line(x, box[1], x, box[3], "grid"), _text(x, box[3] + 18, f"{10.0 ** d:g}", "soft middle")]
    for d in range(low, high + 1):
        _, y = at(10.0 ** left, 10.0 ** d)
        parts += [_line(box[0], y, box[2], y, "grid"), _text(box[0] - 8, y + 4, f"{10.0 ** (d - 9):g}", "soft end")]
    parts += [_text((box[0] + box[2]) / 2, box[3] + 38, "FLOP per byte", "soft middle"),
              f'<text class="soft middle" transform="translate({MARGIN + 8} {(box[1] + box[3]) / 2:.0f}) '
              'rotate(-90)">GFLOP/s</text>']
    begin = max(10.0 ** left, 10.0 ** low / limits.bandwidth)
    roof = [at(begin, begin * limits.bandwidth), at(ridge, limits.flops), at(10.0 ** right, limits.flops)]
    parts.append(f'<polyline class="roof" points="{" ".join([f"{x:.1f},{y:.1f}" for x, y in roof])}"/>')
    points = _apart([at(x, y) for _, x, y, _ in counted], box)
    for (n, _, _, row), (x, y) in zip(counted, points, strict=True):
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="8.5" fill="{colours[row.runtime]}"/>',
                  _text(x, y + 3.5, str(n), "number middle")]
    return parts


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """Exponents of the powers of ten that enclose the values."""
    return math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 1e-9)


def _apart(points: Sequence[tuple[float, float]], box: tuple[float, float, float, float]) -> list[tuple[float, float]]:
    """Separate overlapping points: each moves right until it is free or reaches the edge."""
    placed: list[tuple[float, float]] = []
    for x, y in points:
        while any((x - a) ** 2 + (y - b) ** 2 < 17 ** 2 for a, b in placed) and x < box[2] - 9:
            x += 3
        placed.append((x, y))
    return placed


def _bars(results: BenchResults, colours: dict[str, str], top: float) -> tuple[list[str], float]:
    """One bar per row: its share of the attainable rate, or its GB/s if the limits are unknown. A whisker shows the
    confidence interval."""
    limits, rows = results.limits, results.rows
    scale = [_length(row, row.seconds.value, limits) for row in rows]
    greatest = min(max([1.0, *scale]), CUT) * 1.02 if limits else max([1e-9, *scale]) * 1.02
    left, width = MARGIN + LABELS, WIDTH - 2 * MARGIN - LABELS - NUMBERS
    title = "share of what the limits allow" if limits else "GB/s"
    parts, y = [_text(left, top + 12, title, "soft")], top + 24
    bottom = y + len(rows) * (BAR + GAP) + GROUP * len({(row.op, row.settings) for row in rows})
    step = _step(greatest)
    for n in range(int(greatest / step) + 1):
        x = left + width * n * step / greatest
        parts += [_line(x, y, x, bottom, "grid"), _text(x, bottom + 14,
                                                        f"{n * step:.0%}" if limits else f"{n * step:g}",
                                                        "soft middle")]
    before = None
    for n, (row, length) in enumerate(zip(rows, scale, strict=True), 1):
        if (row.op, row.settings) != before:
            y += GROUP if before else GROUP / 2
            before = (row.op, row.settings)
            parts.append(_text(MARGIN + 24, y + BAR - 3, _short(f"{row.op}  {row.settings}", 46)))
        parts.append(_text(MARGIN + 16, y + BAR - 3, str(n), "soft end"))
        parts.append(f'<rect x="{left}" y="{y:.1f}" width="{max(1.0, width * min(1.0, length / greatest)):.1f}" '
                     f'height="{BAR}" rx="2" '
                     f'fill="{colours[row.runtime]}"/>')
        if length > greatest:
            parts.append(_text(left + width - 6, y + BAR - 3, f"{length:.0%} ›", "number end"))
        low, high = [left + width * min(1.0, _length(row, s, limits) / greatest)
                     for s in (row.seconds.high, row.seconds.low)]
        if high < left + width:
            parts.append(_line(low, y + BAR / 2, high, y + BAR / 2, "whisker"))
        parts.append(_text(WIDTH - MARGIN, y + BAR - 3, _figures(row), "end"))
        y += BAR + GAP
    return parts, bottom + 30


def _length(row: BenchRow, seconds: float, limits: Limits | None) -> float:
    return row.attainable(limits) / seconds if limits else row.bytes / seconds / 1e9


def _figures(row: BenchRow) -> str:
    work, unit = (row.flops, "GFLOP/s") if row.flops else (row.bytes, "GB/s")
    return f"{spelled(row.seconds.value)}, {work / row.seconds.value / 1e9:.1f} {unit}"


def _step(greatest: float) -> float:
    """A round distance between grid lines, for at most five of them."""
    raw = max(greatest, 1e-9) / 5
    power = 10.0 ** math.floor(math.log10(raw))
    return next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most - 1] + "…"


def _text(x: float, y: float, text: str, style: str = "") -> str:
    named = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{named}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'
