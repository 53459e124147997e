"""precompute: apply a function to the elements of a packed tile once, while packing, instead of at every use."""
from __future__ import annotations

from collections.abc import Iterator

from ...core.expr import Cast, Const, Expr, Op, Var, number
from ...core.node import Node, substitute
from ...core.program import Scalar
from ...loop.statements import Aref, Local, LoopProgram, Setf, Stmt, Vref
from ..analysis.loop_queries import locals_in, refusal
from ..step_results import NOTHING, Made


def precompute(program: LoopProgram, tile: str) -> tuple[LoopProgram, Made]:
    """Move a function of one element from every use of a tile to the packing of the tile: a conversion, a factor that
    is a scalar argument (alpha of a gemm), the ReLU of a layer before. Every use must be of the same function, which
    reads nothing but the element, constants and scalar arguments. Zero padding stays zero.

        (precompute A_tile)
        (setf (aref A_tile p) (aref A i p)) …                    (setf (aref A_tile p) (* x (aref A i p))) …
        (incf (aref s) (* (* x (aref A_tile p)) y))      ->      (incf (aref s) (* (aref A_tile p) y))
    """
    step = f"precompute {tile}"
    place = next((n for n in locals_in(program) if n.name == tile), None)
    if place is None:
        raise refusal("E532", step, f"there is no tile '{tile}'")
    uses = _Uses(tile, frozenset([s.name for s in program.all(Scalar)]))
    found = {use: _of_element(use, tile) for use in uses.all_in(program)}
    functions = set(found.values())
    if len(functions) != 1 or None in functions:
        raise refusal("E532", step, f"its elements are not all used by the same function of an element, constants and "
                                    f"scalar arguments: {_shown(program, tile)}")
    ((element, function),) = [f for f in functions if f is not None]

    def go(node: Node) -> Node:
        match node:
            case Expr() if node in found:
                return next(n for n in node.unique() if _is_element(n, tile)).replace(type=function.dtype)
            case Setf(ref=Aref(buffer=name) as ref, value=value) if name == tile:
                return node.replace(ref=ref.replace(type=function.dtype), value=_applied(function, element, value))
            case Local(name=name) if name == tile:
                return node.replace(type=function.dtype)
        mapped: Node = node.map(go)
        return mapped
    return program.map(go), NOTHING


class _Uses:
    """The uses of a tile: the greatest expressions around its elements that read nothing else."""

    def __init__(self, tile: str, scalars: frozenset[str]) -> None:
        self.tile, self.scalars = tile, scalars
        self._pure: dict[Expr, bool] = {}

    def all_in(self, program: LoopProgram) -> Iterator[Expr]:
        """The uses in all statements."""
        for kernel in program.kernels:
            for stmt in kernel.walk():
                if isinstance(stmt, Stmt):
                    fills = isinstance(stmt, Setf) and _is_element(stmt.ref, self.tile)
                    for child in stmt.children:
                        if isinstance(child, Expr) and not (fills and _is_element(child, self.tile)):
                            yield from self.of(child)

    def of(self, e: Expr) -> Iterator[Expr]:
        """Those in an expression."""
        if not any(isinstance(n, Aref | Vref) and n.buffer == self.tile for n in e.unique()):
            return
        if self.is_pure(e):
            yield e
            return
        for child in e.children:
            if isinstance(child, Expr):
                yield from self.of(child)

    def is_pure(self, e: Expr) -> bool:
        """Is it a function of elements of the tile, constants and scalar arguments?"""
        if e not in self._pure:
            match e:
                case Const():
                    made = True
                case Var(name=name):
                    made = name in self.scalars
                case Aref() | Vref():
                    made = e.buffer == self.tile
                case Op() | Cast():
                    made = all(self.is_pure(c) for c in e.children if isinstance(c, Expr))
                case _:
                    made = False
            self._pure[e] = made
        return self._pure[e]


def _of_element(use: Expr, tile: str) -> tuple[Var, Expr] | None:
    """A use as a function of a variable; None for the element itself, and for a function of several elements."""
    read = {n for n in use.unique() if isinstance(n, Aref | Vref)}
    if len(read) != 1 or use in read or not isinstance(element := read.pop(), Aref):
        return None
    variable = Var("element.", element.dtype)
    return variable, substitute(use, {element: variable})


def _is_element(node: Node, tile: str) -> bool:
    return isinstance(node, Aref | Vref) and node.buffer == tile


def _applied(function: Expr, element: Var, value: Expr) -> Expr:
    """The function of what a tile is filled with; of zero padding, zero."""
    match value:
        case Op(fn="where", args=(cond, yes, Const(value=0))):
            return Op("where", (cond, _applied(function, element, yes), number(0, function.dtype)))
    made: Expr = substitute(function, {element: value})
    return made


def _shown(program: LoopProgram, tile: str) -> str:
    uses = [stmt for kernel in program.kernels for stmt in kernel.walk() if isinstance(stmt, Stmt)
            and any(_is_element(n, tile) for c in stmt.children if isinstance(c, Expr) for n in c.walk())]
    return ", ".join([str(u) for u in uses[:2]])
