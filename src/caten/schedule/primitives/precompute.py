"""precompute: apply a function to the elements of a packed tile once, while packing, instead of at every use."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...core.expr import Cast, Const, Expr, Op, Var, number
from ...core.node import Node, substitute
from ...core.program import Scalar
from ...loop.context import Context
from ...loop.effects import written
from ...loop.statements import Aref, For, If, Kernel, Local, LoopProgram, Setf, Stmt, Vref
from ..analysis.access_bounds import is_inside, shapes
from ..analysis.loop_queries import locals_in, refusal
from ..step_results import NOTHING, Made

ELEMENT, AXIS = "element.", "axis{}."              # in a function: the element, and its index


def precompute(program: LoopProgram, tile: str) -> tuple[LoopProgram, Made]:
    """Move a function of one element from every use of a tile to the packing of the tile: a conversion, a factor that
    is a scalar argument (alpha of a gemm), the ReLU of a layer before, the scale and shift of its columns. Every use
    must be of the same function. It reads the element, constants, scalar arguments, and elements of other arrays whose
    index is that of the tile or of loops around it, where they are not written. Zero padding stays zero.

        (precompute A_tile)
        (setf (aref A_tile p) (aref A i p)) …                    (setf (aref A_tile p) (* x (aref A i p))) …
        (incf (aref s) (* (* x (aref A_tile p)) y))      ->      (incf (aref s) (* (aref A_tile p) y))
    """
    step = f"precompute {tile}"
    place = next((n for n in locals_in(program) if n.name == tile), None)
    if place is None:
        raise refusal("E532", step, f"there is no tile '{tile}'")
    kernel = next((k for k in program.kernels if any(n is place for n in k.walk())), None)
    if kernel is None:
        raise refusal("E532", step, f"'{tile}' is an array that several kernels share")
    uses = _Uses(program, kernel, tile)
    found = {use: uses.function(use) for use in uses.all()}
    functions = set(found.values())
    if len(functions) != 1 or None in functions:
        raise refusal("E532", step, f"its elements are not all used by the same function of an element, and of what "
                                    f"packing knows: {_shown(program, tile)}")
    (function,) = [f for f in functions if f is not None]
    _check_bounds(program, kernel, tile, function, step)

    def go(node: Node) -> Node:
        match node:
            case Expr() if node in found:
                return next(n for n in node.unique() if _is_element(n, tile)).replace(type=function.dtype)
            case Setf(ref=Aref(buffer=name) as ref, value=value) if name == tile:
                return node.replace(ref=ref.replace(type=function.dtype), value=_applied(function, ref.index, value))
            case Local(name=name) if name == tile:
                return node.replace(type=function.dtype)
        mapped: Node = node.map(go)
        return mapped
    return program.map(go), NOTHING


class _Uses:
    """The uses of a tile: the greatest expressions around its elements that packing can compute."""

    def __init__(self, program: LoopProgram, kernel: Kernel, tile: str) -> None:
        self.kernel, self.tile = kernel, tile
        self.scalars = frozenset([s.name for s in program.all(Scalar)])
        self.around = _loops_around(kernel.body, tile) or frozenset()
        self.changed = written(kernel.body) | {n.name for n in locals_in(program)}
        self._sizes = frozenset(program.sizes)

    def all(self) -> Iterator[Expr]:
        """The uses in all statements."""
        for stmt in self.kernel.walk():
            if isinstance(stmt, Stmt):
                fills = isinstance(stmt, Setf) and _is_element(stmt.ref, self.tile)
                for child in stmt.children:
                    if isinstance(child, Expr) and not (fills and _is_element(child, self.tile)):
                        yield from self._of(child)

    def _of(self, e: Expr) -> Iterator[Expr]:
        read = {n for n in e.unique() if isinstance(n, Aref | Vref) and n.buffer == self.tile}
        if not read:
            return
        if len(read) == 1 and self._is_known(e, next(iter(read))):
            yield e
            return
        for child in e.children:
            if isinstance(child, Expr):
                yield from self._of(child)

    def _is_known(self, e: Expr, element: Expr) -> bool:
        """Does it read nothing but this element and what packing knows where it stores the element?"""
        match e:
            case Const():
                return True
            case Var(name=name):
                return name in self.scalars
            case Aref():
                return e is element or self._is_known_array(e, element)
            case Op() | Cast():
                return all(self._is_known(c, element) for c in e.children if isinstance(c, Expr))
        return False

    def _is_known_array(self, e: Aref, element: Expr) -> bool:
        if e.buffer in self.changed or not isinstance(element, Aref) or not all(isinstance(i, Var)
                                                                                for i in element.index):
            return False
        names = {n.name for i in e.index for n in i.unique() if isinstance(n, Var)}
        own = {i.name for i in element.index if isinstance(i, Var)}
        return names <= own | self.around | self._sizes and not any(
            isinstance(n, Aref | Vref) for i in e.index for n in i.unique())

    def function(self, use: Expr) -> Expr | None:
        """A use as a function of the element and its index; None for the element itself."""
        element = next(n for n in use.unique() if _is_element(n, self.tile))
        if use is element or not isinstance(element, Aref):
            return None
        new: dict[Node, Expr] = {element: Var(ELEMENT, element.dtype)}
        new |= {i: Var(AXIS.format(n), "i64") for n, i in enumerate(element.index) if isinstance(i, Var)}
        made: Expr = substitute(use, new)
        return made


def _loops_around(stmts: Sequence[Stmt], tile: str) -> frozenset[str] | None:
    """The loops around the declaration of a tile; None if it is not declared in these statements."""
    for s in stmts:
        match s:
            case Local(name=name) if name == tile:
                return frozenset()
            case For(name=name, body=body) if (inner := _loops_around(body, tile)) is not None:
                return inner | {name}
            case If(then=then, otherwise=otherwise):
                for part in (then, otherwise):
                    if (inner := _loops_around(part, tile)) is not None:
                        return inner
    return None


def _check_bounds(program: LoopProgram, kernel: Kernel, tile: str, function: Expr, step: str) -> None:
    """Refuse a function that reads another array at an index that is not proven to be inside where the tile is
    packed."""
    if not any(isinstance(n, Aref) for n in function.unique()):
        return
    sizes = shapes(program)

    def check(stmts: Sequence[Stmt], context: Context) -> None:
        for s in stmts:
            match s:
                case For():
                    check(s.body, context.inside(s))
                case If(cond=cond, then=then, otherwise=otherwise):
                    check(then, context.given(cond))
                    check(otherwise, context.given(cond, False))
                case Setf(ref=Aref(buffer=name) as ref, value=value) if name == tile:
                    known = context
                    while isinstance(value, Op) and value.fn == "where":
                        known, value = known.given(value.args[0]), value.args[1]
                    for n in _applied(function, ref.index, number(0, "i64")).unique():
                        if isinstance(n, Aref) and not is_inside(n, sizes[n.buffer], known):
                            raise refusal("E532", step, f"{n} is not proven to be inside of {n.buffer} there")
            context = context.after(s)
    check(kernel.body, Context.of(program))


def _is_element(node: Node, tile: str) -> bool:
    return isinstance(node, Aref | Vref) and node.buffer == tile


def _applied(function: Expr, index: Sequence[Expr], value: Expr) -> Expr:
    """The function of what a tile is filled with; of zero padding, zero."""
    match value:
        case Op(fn="where", args=(cond, yes, Const(value=0))):
            return Op("where", (cond, _applied(function, index, yes), number(0, function.dtype)))
    new: dict[Node, Expr] = {Var(AXIS.format(n), "i64"): i for n, i in enumerate(index)}
    new |= {n: value for n in function.unique() if isinstance(n, Var) and n.name == ELEMENT}
    made: Expr = substitute(function, new)
    return made


def _shown(program: LoopProgram, tile: str) -> str:
    uses = [stmt for kernel in program.kernels for stmt in kernel.walk() if isinstance(stmt, Stmt)
            and any(_is_element(n, tile) for c in stmt.children if isinstance(c, Expr) for n in c.walk())]
    return ", ".join([str(u) for u in uses[:2]])
