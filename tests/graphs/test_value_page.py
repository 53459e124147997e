"""--emit=html: what the page holds, and what a browser makes of it."""
from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from graphs_of_samples import source_of, values_of
from test_dot import GRAPH

from caten.graphs.graph_layout import BESIDE, HEIGHT, placed
from caten.graphs.source_lines import Line
from caten.graphs.value_graph import graph_of
from caten.graphs.value_page import page
from caten.tensor.fusion_report import explained


class Elements(HTMLParser):
    """The elements of a page: the section around each, its attributes and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[tuple[str, list[str]]] = []
        self.section = ""
        self.found: list[tuple[str, str, dict[str, str], list[str]]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = {key: value or "" for key, value in attributes}
        self.section = named["id"] if tag == "section" else self.section
        self.found.append((self.section, tag, named, []))
        if tag != "meta":
            self.open.append((tag, self.found[-1][3]))

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((self.section, tag, {key: value or "" for key, value in attributes}, []))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.open[-1][1].append(data)

    def marks(self, section: str) -> set[str]:
        return {name for where, _, attributes, _ in self.found if where == section for name in attributes.get("data-values", "").split()}


def made(*names: str) -> str:
    programs = values_of(*names)
    return page(", ".join(names), [graph_of(p) for p in programs], [list(explained(p)) for p in programs], source_of(programs)[0])


@pytest.mark.slice(2)
@pytest.mark.parametrize("names", [("softmax",), ("mlp",), ("axpy", "layernorm"), ("gemm_bias_relu",)])
def test_values_are_in_all_three_parts(names: tuple[str, ...]) -> None:
    elements = Elements(made(*names))
    values = {f"{n}.{name}" for n, p in enumerate(values_of(*names)) for d in p.definitions for name in d.names}
    assert elements.marks("kernels") <= elements.marks("values")
    assert values <= elements.marks("values")
    assert values == elements.marks("kernels") == elements.marks("source")


def test_values_of_one_kernel_have_its_colour() -> None:
    (graph,) = [graph_of(p) for p in values_of("gemm_bias_relu")]
    elements = Elements(page("", [graph, GRAPH], [[], []], []))
    boxes = [e[2].get("style", "").removeprefix("stroke: ") for e in elements.found if e[1] == "rect"]
    kernels = [e[2].get("style", "").removeprefix("border-left: 4px solid ") for e in elements.found if e[1] == "article"]
    first, (blue, other) = len(graph.vertices), kernels[2:4]
    assert [c for c, v in zip(boxes, graph.vertices, strict=False) if v.kernel] == [kernels[0]] * 2
    assert blue != other
    assert boxes[first:] == ["", blue, "", other]


def test_it_needs_no_network_and_no_server() -> None:
    text = made("softmax")
    elements = Elements(text)
    assert not [e for e in elements.found if {"src", "href"} & e[2].keys() or e[1] in ("link", "img", "iframe", "base")]
    code = re.sub(r"<pre>.*</pre>", "", text, flags=re.DOTALL)                # C has functions such as prefetch
    assert not re.findall(r"https?:|@import|url\(|fetch\(|import ", code)
    assert "prefers-color-scheme: dark" in text
    assert "$" not in code


def test_what_is_shown_is_text() -> None:
    text = page("<b>&", [GRAPH], [["a < b"]], [Line('x = "</script>" < 1;', ("0.v0",)), Line("")])
    elements = Elements(text)
    assert ["<b>&"] in [e[3] for e in elements.found if e[1] == "title"]
    assert next(e[3] for e in elements.found if e[1] == "li") == ["a < b"]
    lines = [e for e in elements.found if e[2].get("class") == "line"]
    assert [e[3] for e in lines] == [['x = "</script>" < 1;'], [" "]]
    assert [e[2].get("data-values") for e in lines] == ["0.v0", None]


def test_boxes_do_not_overlap_and_are_below_what_they_read() -> None:
    for graph in (GRAPH, *[graph_of(p) for p in values_of("layernorm", "mlp")]):
        at = placed(graph)
        assert all(at[e.reader].y >= at[e.source].y + HEIGHT for e in graph.edges)
        boxes = sorted(at.values(), key=lambda p: (p.y, p.x))
        assert all(a.y != b.y or a.right + BESIDE <= b.x for a, b in itertools.pairwise(boxes))


def opened(browser: str, file: Path, folder: Path) -> Elements:
    """The page as a browser has it after its scripts have run."""
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=2000",
                           "--dump-dom", file.as_uri()], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return Elements(done.stdout.replace("<!DOCTYPE html>", ""))


def marked(elements: Elements) -> set[str]:
    found = [set(e[2]["data-values"].split()) for e in elements.found if "marked" in e[2].get("class", "").split() and "data-values" in e[2]]
    return set.intersection(*found) if found else set()


@pytest.mark.slow
@pytest.mark.slice(2)
@pytest.mark.parametrize(("names", "clicked", "value", "kernels"), [
    (("softmax",), "#kernels code", "0.v2", ["marked", ""]),                                # a member of a kernel
    (("axpy", "layernorm"), "#kernels p", "1.v1", ["", "", "marked", ""]),                  # a kernel
    (("softmax",), "#source .line", "0.v1", ["marked", ""])])                               # a line of C
def test_a_click_on_a_kernel_or_a_line_marks_its_values(names: tuple[str, ...], clicked: str, value: str, kernels: list[str],
                                                        tool: Callable[[str], str], tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    click = f"""const clicked = document.querySelector('{clicked}[data-values~="{value}"]');
        clicked.id = "clicked"; clicked.dispatchEvent(new MouseEvent("click", {{ bubbles: true }}));"""
    file.write_text(made(*names).replace("</body>", f"<script>{click}</script></body>"))
    elements = opened(tool("chromium"), file, tmp_path)
    named = [(e[0], set(e[2]["data-values"].split()), "marked" in e[2].get("class", "").split()) for e in elements.found if "data-values" in e[2]]
    chosen = next(set(e[2]["data-values"].split()) for e in elements.found if e[2].get("id") == "clicked")
    assert value in chosen
    assert all(is_marked == bool(chosen & values) for _, values, is_marked in named)
    assert {section for section, _, is_marked in named if is_marked} == {"values", "kernels", "source"}
    assert [e[2].get("class", "") for e in elements.found if e[1] == "article"] == kernels


@pytest.mark.slow
def test_a_click_on_a_value_marks_its_kernel_and_its_lines(tool: Callable[[str], str], tmp_path: Path) -> None:
    file, text = tmp_path / "softmax.html", made("softmax")
    click = """<script>document.querySelector('svg [data-values="0.v1"]').dispatchEvent(new MouseEvent("click", { bubbles: true }));</script></body>"""
    file.write_text(text.replace("</body>", click))
    elements = opened(tool("chromium"), file, tmp_path)
    assert marked(elements) == {"0.v1"}
    lines = ["".join(e[3]) for e in elements.found if e[0] == "source" and "marked" in e[2].get("class", "").split()]
    plain = [line for line in source_of(values_of("softmax"))[0] if "0.v1" in line.values]
    assert lines == [line.text for line in plain]
    assert any("expf(" in line for line in lines)
    assert [e[2].get("class", "") for e in elements.found if e[1] == "article"] == ["marked", ""]
    file.write_text(text)
    assert marked(opened(tool("chromium"), file, tmp_path)) == set()
