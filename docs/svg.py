"""Parts of SVG pictures that the scripts of this folder draw, for light and for dark pages."""
from __future__ import annotations

from collections.abc import Iterable

# Colours for light and for dark pages; the page's own background shows through.
STYLE = """
  text { font: 13px sans-serif; fill: #1f2328; }
  .small { font-size: 11px; } .code { font-family: monospace; } .mid { text-anchor: middle; }
  .box { fill: #ddf4ff; stroke: #0969da; } .plain { fill: none; stroke: #656d76; }
  .hot { fill: #ffd8b5; stroke: #bc4c00; } .warm { fill: #dafbe1; stroke: #1a7f37; }
  .line { stroke: #656d76; fill: none; stroke-width: 1.5; } .dash { stroke-dasharray: 4 3; } .dot { fill: #bc4c00; }
  .tip { fill: #656d76; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .box { fill: #0c2d6b; stroke: #58a6ff; } .hot { fill: #5a1e02; stroke: #f0883e; }
    .warm { fill: #033a16; stroke: #3fb950; } .plain { stroke: #8d96a0; } .line { stroke: #8d96a0; } .dot { fill: #f0883e; }
    .tip { fill: #8d96a0; }
  }
"""
HEAD = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="tip" d="M0 0 8 4 0 8z"/></marker>'


def svg(title: str, width: int, height: int, parts: Iterable[str]) -> str:
    body = "\n".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">\n'
            f"<title>{title}</title>\n<defs><style>{STYLE}</style>{HEAD}</defs>\n{body}\n</svg>\n")


def box(x: float, y: float, w: float, h: float, kind: str = "box") -> str:
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}"/>'


def text(x: float, y: float, words: str, kind: str = "") -> str:
    escaped = words.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escaped}</text>'


def arrow(*points: tuple[float, float]) -> str:
    path = " ".join([f"{x:g},{y:g}" for x, y in points])
    return f'<polyline class="line" marker-end="url(#tip)" points="{path}"/>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "") -> str:
    return f'<line class="line {kind}" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>'
