"""Where the boxes of a graph are drawn: in layers, each value below all that it reads."""
from __future__ import annotations

from ..frozen import frozen
from .value_graph import Graph

HEIGHT, ABOVE, BESIDE, LETTER = 24, 30, 14, 7.3          # of a box, the gaps around it, and a letter in it, in pixels


@frozen
class Placed:
    """A box: its upper left corner and width."""

    x: float
    y: float
    width: float

    @property
    def right(self) -> float:
        return self.x + self.width


def placed(graph: Graph) -> dict[str, Placed]:
    """The boxes of all values. Their layer is the length of the longest path from a parameter; in a layer they are in
    the order of the mean position of what they read (the barycentre method of Sugiyama, Tagawa and Toda 1981)."""
    reads: dict[str, list[str]] = {v.name: [] for v in graph.vertices}
    for e in graph.edges:
        reads[e.reader].append(e.source)
    layer: dict[str, int] = {}
    for v in graph.vertices:
        layer[v.name] = max([layer[source] + 1 for source in reads[v.name]], default=0)
    found: dict[str, Placed] = {}
    for n in range(max(layer.values(), default=-1) + 1):
        here = [v for v in graph.vertices if layer[v.name] == n]
        centre = {v.name: sum([found[s].x + found[s].width / 2 for s in reads[v.name]]) / max(1, len(reads[v.name]))
                  for v in here}
        here.sort(key=lambda v: centre[v.name])
        x = 0.0
        for v in here:
            width = round(len(v.title) * LETTER + 16)
            x = max(x, round(centre[v.name] - width / 2))
            found[v.name] = Placed(x, n * (HEIGHT + ABOVE), width)
            x += width + BESIDE
    return found
