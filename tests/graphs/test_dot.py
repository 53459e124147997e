"""--emit=dot: read again by a small reader of the language of Graphviz."""
from __future__ import annotations

import re
import subprocess
from collections.abc import Callable

from graphs_of_samples import values_of

from caten.graphs.dot import dot, quoted
from caten.graphs.value_graph import Edge, Graph, Kernel, Vertex, graph_of

TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|->|[{}\[\];,=]|[\w.]+)')


class Reader:
    """digraph = `digraph ID { statement… }`; a statement is a subgraph, an edge, a node, an attribute, or a default."""

    def __init__(self, text: str) -> None:
        self.tokens = [m[1] for m in TOKEN.finditer(text)]
        assert "".join(self.tokens) == "".join(re.sub(r'("(?:[^"\\]|\\.)*")|\s+', lambda m: m[1] or "", text).split("\n")), "all of the text is read"
        self.at = 0
        self.nodes: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {}        # with the labels of the clusters around
        self.edges: dict[tuple[str, str], dict[str, str]] = {}
        self.graphs: list[str] = []
        while self.at < len(self.tokens):
            assert self.next() == "digraph"
            self.graphs.append(self.word())
            self.block([])

    def next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def word(self) -> str:
        token = self.next()
        return re.sub(r"\\(.)", r"\1", token[1:-1]) if token.startswith('"') else token

    def attributes(self) -> dict[str, str]:
        found = {}
        while self.next() != "]":
            if self.tokens[self.at - 1] == ",":
                continue
            self.at -= 1
            key = self.word()
            assert self.next() == "="
            found[key] = self.word()
        return found

    def block(self, around: list[str]) -> None:
        assert self.next() == "{"
        inside = [*around, ""]
        while (token := self.next()) != "}":
            if token == "subgraph":
                assert self.next().startswith("cluster_")
                self.block(inside)
                continue
            self.at -= 1
            name, after = self.word(), self.next()
            if after == "=":
                inside[-1] = self.word()
            elif after == "->":
                pair = name, self.word()
                self.edges[pair] = self.attributes() if self.next() == "[" else {}
                self.at -= 0 if self.tokens[self.at - 1] == "]" else 1
            elif name not in ("node", "edge"):
                self.nodes[name] = tuple(inside[1:]), self.attributes()
            else:
                self.attributes()
            assert self.next() == ";"


def test_a_softmax_before_and_after() -> None:
    read = Reader(dot([graph_of(p) for p in values_of("softmax")]))
    assert read.graphs == ["Softmax"]
    assert {name: read.nodes[f"before {name}"][0] for name in ("X", "v0", "v1")} == dict.fromkeys(("X", "v0", "v1"), ("values",))
    assert {read.nodes[f"after v{n}"][0] for n in range(4)} == {("kernels", "k0: rows, loops i M")}
    assert read.nodes["after X"][0] == ("kernels",)
    values = {(a.removeprefix("before "), b.removeprefix("before ")) for a, b in read.edges if a.startswith("before ")}
    assert values == {("X", "v0"), ("X", "v1"), ("v0", "v1"), ("v1", "v2"), ("v1", "v3"), ("v2", "v3"), ("v3", "output Y")}
    assert read.edges["after X", "after v0"] == {"style": "dashed"}
    assert read.edges["after v1", "after v2"] == {}
    assert read.nodes["before v1"][1]["label"] == "v1 e"


GRAPH = Graph("A\\B", (Vertex("X", "X", "f32 (N)"), Vertex("v0", 'a "name"', "f32 (N)", "(+ 1)", "k0"), Vertex("v1", "t", "f32 (N)", "(exp)"),
                       Vertex("v2", "y", "f32 (N)", "(*)", "k1")),
              (Edge("X", "v0"), Edge("v0", "v1"), Edge("v1", "v2"), Edge("v0", "v2", "v2 reads axis 0 of v0 at (- i 1) (shifted)")),
              (Kernel("k0", "map", "i N", ("v0",)), Kernel("k1", "map", "", ("v2",))), (("Y", "v2"),))


def test_names_are_quoted_and_reasons_are_labels() -> None:
    read = Reader(dot([GRAPH]))
    assert read.graphs == ["A\\B"]
    assert read.nodes["after v0"][1]["label"] == 'a "name"'
    assert read.edges["after v0", "after v2"] == {"style": "dashed", "label": "v2 reads axis 0 of v0 at (- i 1) (shifted)"}
    assert quoted('a\n"\\') == '"a\\n\\"\\\\"'


def test_a_value_that_its_readers_compute_is_in_no_kernel() -> None:
    read = Reader(dot([GRAPH]))
    assert ("before v1", "before v2") in read.edges
    assert "after v1" not in read.nodes
    assert ("after v0", "after v2") in read.edges


def test_several_programs_are_several_graphs() -> None:
    assert Reader(dot([graph_of(p) for p in values_of("axpy", "gemm")])).graphs == ["Axpy", "Gemm"]


def test_graphviz_draws_it(tool: Callable[[str], str]) -> None:
    done = subprocess.run([tool("dot"), "-Tsvg"], input=dot([GRAPH]), capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count('class="cluster"') == 4
