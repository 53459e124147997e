"""The graph of values in the language of Graphviz: as it is before fusion, and in kernels after it. `dot -Tsvg` draws
both beside each other."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from .value_graph import Graph, Vertex


def dot(graphs: Sequence[Graph]) -> str:
    """One digraph for each program."""
    return "".join([f"{line}\n" for graph in graphs for line in _digraph(graph)])


def _digraph(graph: Graph) -> Iterator[str]:
    yield f"digraph {quoted(graph.name)} {{"
    yield '  node [shape=box, style=rounded, fontname="monospace", fontsize=10];'
    yield '  edge [fontname="monospace", fontsize=8];'
    yield "  subgraph cluster_before {"
    yield '    label="values";'
    yield from [f"    {line}" for line in _before(graph)]
    yield "  }"
    yield "  subgraph cluster_after {"
    yield '    label="kernels";'
    yield from [f"    {line}" for line in _after(graph)]
    yield "  }"
    yield "}"


def _before(graph: Graph) -> Iterator[str]:
    """All values, and who reads whom."""
    for v in graph.vertices:
        yield _node("before", v)
    for e in graph.edges:
        yield f"{quoted(f'before {e.source}')} -> {quoted(f'before {e.reader}')};"
    yield from _outputs(graph, "before")


def _after(graph: Graph) -> Iterator[str]:
    """The values in their kernels. A dashed edge is a value that goes through memory; its label is the reason."""
    for v in graph.vertices:
        if v.is_parameter:
            yield _node("after", v)
    by_name = {v.name: v for v in graph.vertices}
    for k in graph.kernels:
        yield f"subgraph cluster_{k.name} {{"
        yield f"  label={quoted(f'{k.name}: {k.form}' + (f', loops {k.outer}' if k.outer else ''))};"
        for name in k.members:
            yield f"  {_node('after', by_name[name])}"
        yield "}"
    for source, reader in _read_in_the_end(graph):
        why = next((e.why for e in graph.edges if (e.source, e.reader) == (source, reader)), "")
        passes = by_name[source].kernel == by_name[reader].kernel
        more = "" if passes else f" [style=dashed, label={quoted(why)}]" if why else " [style=dashed]"
        yield f"{quoted(f'after {source}')} -> {quoted(f'after {reader}')}{more};"
    yield from _outputs(graph, "after")


def _read_in_the_end(graph: Graph) -> Iterator[tuple[str, str]]:
    """Who reads whom, where the maps that their readers compute are a part of these."""
    by_name = {v.name: v for v in graph.vertices}
    reads: dict[str, list[str]] = {}
    for e in graph.edges:
        reads.setdefault(e.reader, []).append(e.source)
    for k in graph.kernels:
        for reader in k.members:
            found: dict[str, None] = {}
            stack = list(reversed(reads.get(reader, [])))
            while stack:
                source = stack.pop()
                if by_name[source].kernel or by_name[source].is_parameter:
                    found[source] = None
                else:
                    stack += reversed(reads.get(source, []))
            yield from [(source, reader) for source in found]


def _outputs(graph: Graph, part: str) -> Iterator[str]:
    for name, value in graph.outputs:
        yield f"{quoted(f'{part} output {name}')} [label={quoted(name)}, shape=ellipse];"
        yield f"{quoted(f'{part} {value}')} -> {quoted(f'{part} output {name}')};"


def _node(part: str, v: Vertex) -> str:
    shape = ", shape=ellipse" if v.is_parameter else ""
    return f"{quoted(f'{part} {v.name}')} [label={quoted(v.title)}, tooltip={quoted(v.text or v.type)}{shape}];"


def quoted(text: str) -> str:
    """A string of the language of Graphviz. `\\N` and its like mean something there, and a backslash stays one."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
