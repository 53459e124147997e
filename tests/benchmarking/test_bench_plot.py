"""The picture is XML whose labels do not cover each other."""
from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import pytest
from bench_rows import results, row

from caten.benchmarking import plot
from caten.benchmarking.results import BenchResults

SVG = "{http://www.w3.org/2000/svg}"
MANY = results(*[row(op, runtime, 1e-3 * (n + 1)) for n, op in enumerate(("Gemm", "A long name of an operator that has no end")) for runtime in ("clang", "gcc")])


def parsed(given: BenchResults) -> ElementTree.Element:
    return ElementTree.fromstring(plot.drawn(given))


def test_one_numbered_point_and_one_bar_for_each_row() -> None:
    svg = parsed(MANY)
    assert len(svg.findall(f"{SVG}circle")) == 4
    numbers = [t.text for t in svg.findall(f"{SVG}text") if t.get("class") == "number middle"]
    assert numbers == ["1", "2", "3", "4"]
    assert len([r for r in svg.findall(f"{SVG}rect") if r.get("height") == str(plot.BAR)]) == 4


def test_points_at_one_place_stand_beside_each_other() -> None:
    circles = [(float(c.get("cx", 0)), float(c.get("cy", 0))) for c in parsed(results(*[row(runtime=str(n)) for n in range(5)])).findall(f"{SVG}circle")]
    assert all((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 >= 17 ** 2 for n, a in enumerate(circles) for b in circles[:n])


def test_lines_of_figures_do_not_touch() -> None:
    heights = sorted(float(t.get("y", 0)) for t in parsed(MANY).findall(f"{SVG}text") if t.get("class") == "end")
    assert all(b - a >= 14 for a, b in pairwise(heights))


def test_everything_is_inside() -> None:
    svg = parsed(MANY)
    width, height = float(svg.get("width", 0)), float(svg.get("height", 0))
    for element in svg.findall(f"{SVG}rect"):
        assert float(element.get("x", 0)) + float(element.get("width", 0)) <= width
        assert float(element.get("y", 0)) + float(element.get("height", 0)) <= height


@pytest.mark.parametrize("given", [results(row(), limits=None), results(row(flops=0))])
def test_without_limits_or_arithmetic_there_is_no_roofline(given: BenchResults) -> None:
    svg = parsed(given)
    assert not svg.findall(f"{SVG}circle")
    assert not svg.findall(f"{SVG}polyline")


def test_a_bar_beyond_the_limit_is_cut_and_says_so() -> None:
    texts = [t.text for t in parsed(results(row(seconds=1e-4))).findall(f"{SVG}text")]
    assert "500% ›" in texts


def test_both_themes_have_colours() -> None:
    text = plot.drawn(MANY)
    assert text.index(plot.LIGHT["back"]) < text.index("prefers-color-scheme: dark") < text.index(plot.DARK["back"])
