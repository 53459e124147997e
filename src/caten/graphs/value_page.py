"""A page that shows values, their kernels and the generated source, and what belongs together. One file without any
network access."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from string import Template

from .graph_layout import HEIGHT, Placed, placed
from .source_lines import Line
from .value_graph import Edge, Graph, Vertex

_PAGE = Path(__file__).with_name("page.html")


def page(title: str, graphs: Sequence[Graph], reports: Sequence[Sequence[str]], source: Sequence[Line]) -> str:
    """The page of some programs. `reports`: for each, what fusion has to say in lines of text."""
    values = [line for n, g in enumerate(graphs) for line in _values(n, g)]
    kernels = [line for n, g in enumerate(graphs) for line in _kernels(n, g, reports[n])]
    return Template(_PAGE.read_text()).substitute(
        title=escape(title), values="\n".join(values), kernels="\n".join(kernels),
        source="".join([_line(line) for line in source]))


def _values(number: int, graph: Graph) -> Iterator[str]:
    """The picture of the values, and their definitions."""
    yield f"<h3>{escape(graph.name)}</h3>"
    yield from _picture(number, graph)
    for v in graph.vertices:
        what = v.text or "a parameter"
        yield (f'<code class="value"{_marks(number, [v.name])}>{escape(v.title)} '
               f'<span class="faint">{escape(v.type)}</span> {escape(what)}</code>')


def _picture(number: int, graph: Graph) -> Iterator[str]:
    at = placed(graph)
    width, height = max([p.right for p in at.values()], default=1), max([p.y for p in at.values()], default=0) + HEIGHT
    yield (f'<svg viewBox="-4 -4 {width + 8} {height + 8}" width="{width + 8}" role="img" '
           f'aria-label="The values of {escape(graph.name)}">')
    for e in graph.edges:
        yield _arrow(e, at, {v.name: v for v in graph.vertices})
    colours = {name: _colour(n) for n, k in enumerate(graph.kernels) for name in k.members}
    for v in graph.vertices:
        p, round_ = at[v.name], HEIGHT // 2 if v.is_parameter else 4
        colour = f' style="stroke: {colours[v.name]}"' if v.name in colours else ""
        yield (f"<g{_marks(number, [v.name])}><title>{escape(v.text or v.type)}</title>"
               f'<rect x="{p.x}" y="{p.y}" width="{p.width}" height="{HEIGHT}" rx="{round_}"{colour}/>'
               f'<text x="{p.x + p.width / 2:g}" y="{p.y + HEIGHT - 8}" text-anchor="middle">{escape(v.title)}</text>'
               "</g>")
    yield "</svg>"


def _arrow(e: Edge, at: dict[str, Placed], by_name: dict[str, Vertex]) -> str:
    """An edge; dashed where the value goes through memory."""
    a, b = at[e.source], at[e.reader]
    kernels = by_name[e.source].kernel, by_name[e.reader].kernel
    memory = by_name[e.source].is_parameter or (kernels[0] != kernels[1] and "" not in kernels)
    x, y, u, v = a.x + a.width / 2, a.y + HEIGHT, b.x + b.width / 2, b.y
    kind = ' class="memory"' if memory else ""
    return (f'<path{kind} d="M{x:g} {y} C{x:g} {y + 20:g} {u:g} {v - 20:g} {u:g} {v}">'
            f"<title>{escape(e.why)}</title></path>")


def _kernels(number: int, graph: Graph, report: Sequence[str]) -> Iterator[str]:
    """The kernels with their members, and what fusion says."""
    by_name = {v.name: v for v in graph.vertices}
    for n, k in enumerate(graph.kernels):
        outer = f', outer loops {escape(k.outer)}' if k.outer else ""
        yield (f'<article style="border-left: 4px solid {_colour(n)}"><h3>{escape(graph.name)} {k.name}</h3>'
               f"<p{_marks(number, k.members)}>{k.form}{outer}</p>")
        for name in k.members:
            yield f'<code class="value"{_marks(number, [name])}>{escape(by_name[name].title)}</code>'
        yield "</article>"
    yield "<article><h3>What fusion has decided</h3><ul>"
    yield from [f"<li>{escape(line)}</li>" for line in report]
    yield "</ul></article>"


def _colour(kernel: int) -> str:
    """The colour of a kernel, in the picture and in the list: neighbours are far apart on the circle of hues."""
    return f"hsl({(210 + 137 * kernel) % 360} 60% 50%)"


def _line(line: Line) -> str:
    marks = f' data-values="{escape(" ".join(line.values))}" tabindex="0"' if line.values else ""
    return f'<span class="line"{marks}>{escape(line.text) or " "}</span>'


def _marks(number: int, names: Sequence[str]) -> str:
    """The attributes of an element that belongs to values."""
    return f' data-values="{escape(" ".join([f"{number}.{name}" for name in names]))}" tabindex="0"'
