"""Elements of outputs that no statement sets: the output is filled with 0 before, unless every element is proven to be set; where one is proven
never to be set, at any size, the spec is refused.

    (for i 0 N 1 serial                          (for y0 0 N 1 serial (setf (aref y y0) 0.0))
      (if (< (aref x i) 0.0)               ->    (for i 0 N 1 serial
        ((setf (aref y i) 1.0))))                  (if (< (aref x i) 0.0) ((setf (aref y i) 1.0))))

An output that is an input too holds what the caller gave.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Any

from ..core.expr import Const, Expr, Var, index, number
from ..core.naming import Names
from ..core.program import Buffer, Param
from ..errors import CatenError
from .accesses import accesses
from .affine import constant, expression, text_of
from .check_rows import CheckRows, told
from .context import Context
from .covering import Coverage, Element, element_of
from .effects import reads
from .integer_sets import Constraint
from .simplify import statement_field
from .statements import ONE, ZERO, Aref, For, If, Incf, Setf, Stmt
from .stores import Store, Stores, inside

HINT = "set the output everywhere first, to 0 if nothing else, or list it among the inputs too: it then keeps what the caller gave"
MOST_CANDIDATES = 64           # elements of one output that are looked at for one that is never set


def fill_outputs(op: Any) -> Any:
    """The program with a fill of every output that is no input and may have elements, at the end or where it is read, that nothing has set. Raises
    CatenError E403 where an element is never set."""
    fresh = [b for b in op.all(Buffer) if b.access == "out"]
    field_of = {id(c): f for c in op.clauses if (f := statement_field(c))}
    clause = next((c for c in op.clauses if id(c) in field_of), None)
    if not fresh or clause is None:
        return op
    body: tuple[Stmt, ...] = getattr(clause, field_of[id(clause)])
    search = _Search(op, body, fresh)
    unset = [b for b in fresh if not search.is_set(b)]
    if problems := [refusal(op, search, b, element) for b in unset if (element := search.never_set(b)) is not None]:
        raise CatenError(*[d for problem in problems for d in problem.diagnostics])
    if not unset:
        return op
    names = Names.of(op)
    fills = tuple([_fill(b, names) for b in unset])
    return op.replace(clauses=tuple([c.replace(**{field_of[id(c)]: (*fills, *body)}) if c is clause else c for c in op.clauses]))


class _Search:
    """What the statements of a body set."""

    def __init__(self, op: Any, body: tuple[Stmt, ...], fresh: Sequence[Buffer]):
        self.context = Context.of(op)
        self.names = frozenset([p.declares()[0] for p in op.all(Param) if hasattr(p, "declares")])
        self.body, self.fresh = body, frozenset([b.name for b in fresh])
        self.shapes = {b.name: b.shape for b in fresh}
        self.stores = Stores(body, self.fresh, [b.name for b in op.all(Buffer)])
        self.at_end = self.stores.block(body, self.context, self.names)
        self.possible = list(self.stores.possible)
        self.coverage = Coverage()

    def is_set(self, buffer: Buffer) -> bool:
        """Is every element set at the end, and every one that is read before that?"""
        stores = [s for s in self.at_end if s.buffer == buffer.name]
        context, element = element_of(buffer.shape, self.context)
        return self.coverage.covers(context, element, stores) and self.reads_are_set(buffer.name, self.body, self.context, (), self.names)

    def reads_are_set(self, name: str, stmts: Sequence[Stmt], context: Context, before: Sequence[Store], names: frozenset[str]) -> bool:
        """Was every element that the statements read set `before`, or by one of the statements before the reading one? `names`: those that mean
        something around them."""
        if not any(reads(s) & {name} for s in stmts):
            return True
        done = list(before)
        for stmt in stmts:
            if name in reads(stmt) or isinstance(stmt, Incf):
                for access in accesses(stmt, context):
                    if access.ref.buffer == name and (not access.is_write or isinstance(stmt, Incf)):
                        at, element = _inside(access.context, access.ref.index, self.shapes[name])
                        if not self.coverage.covers(at, element, done):
                            return False
                loop = frozenset([stmt.name]) if isinstance(stmt, For) else frozenset()
                for arm, within, earlier in self._arms(stmt, context, name):
                    if not self.reads_are_set(name, arm, within, [*done, *earlier], names | loop):
                        return False
            done += [s for s in self.stores.statement(stmt, context, names) if s.buffer == name]
            context = context.after(stmt)
        return True

    def _arms(self, stmt: Stmt, context: Context, name: str) -> Iterator[tuple[tuple[Stmt, ...], Context, list[Store]]]:
        match stmt:
            case For(loop, _, _, _, _, body):
                stores = [s for s in self.stores.within.get(loop, ()) if s.buffer == name]
                yield body, context.inside(stmt), inside(stores, stmt, context, Var(loop, "i64"))
            case If(cond, then, otherwise):
                yield then, context.given(cond), []
                yield otherwise, context.given(cond, False), []

    def never_set(self, buffer: Buffer) -> tuple[Expr, ...] | None:
        """The index of an element that no statement sets, whatever the sizes at which the array has elements."""
        some = tuple([Constraint(self.context.linear(e).shifted(-1)) for e in buffer.shape])
        if some and self.context.excludes(some):
            return None
        stores = [(context, ref) for context, ref in self.possible if ref.buffer == buffer.name]
        for candidate in islice(_candidates(buffer.shape), MOST_CANDIDATES):
            element = [self.context.linear(i) for i in candidate]
            if all(context.excludes((*some, *[Constraint(context.linear(i) - e, equal=True) for i, e in zip(ref.index, element, strict=True)]))
                   for context, ref in stores):
                return candidate
        return None


def _inside(context: Context, position: Sequence[Expr], shape: Sequence[Expr]) -> tuple[Context, Element]:
    """The element that is read, which lies in the array, for other reads are refused or fail."""
    for i, extent in zip(position, shape, strict=True):
        context = context.given(index(0) <= i).given(i < extent)
    return context, tuple([context.linear(i) for i in position])


def _candidates(shape: Sequence[Expr]) -> Iterator[tuple[Expr, ...]]:
    """Elements that may have been forgotten: all of a small array, else those at the ends of the axes."""
    sides: list[list[Expr]] = []
    for extent in shape:
        last = expression(Context().linear(extent) - constant(1))
        sides.append([index(n) for n in range(extent.value)] if isinstance(extent, Const) and extent.value <= MOST_CANDIDATES else [last, index(0)])
    return product(*sides)


def _fill(buffer: Buffer, names: Names) -> Stmt:
    axes = [names.fresh(f"{buffer.name}_{axis}") for axis in range(len(buffer.shape))]
    place = Aref(buffer.name, tuple([Var(a, "i64") for a in axes]), buffer.type)
    stmt: Stmt = Setf(place, number(0, buffer.type))
    for axis in reversed(buffer.order):
        stmt = For(axes[axis], ZERO, buffer.shape[axis], ONE, "serial", (stmt,))
    return stmt


def refusal(op: Any, search: _Search, buffer: Buffer, element: tuple[Expr, ...]) -> CatenError:
    """E403 at the last statement that sets the output."""
    stores = [ref for _, ref in search.possible if ref.buffer == buffer.name]
    place = told(text_of(Aref(buffer.name, element, buffer.type))) if element else buffer.name
    at = text_of(stores[-1]) if stores else buffer.name
    return CheckRows(op).error("E403", at, f"no statement sets {place}, an element of the output '{buffer.name}'", HINT)
