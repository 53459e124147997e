"""The canonical form of a program of values: however it is written, equal programs have equal values.

- A view, a map that is read at one index by one value, and one that costs little, are part of their readers, if no
  request to fusion names them.
- What several values compute is a value of its own, if it costs less to store it (`common_parts`).
- What costs much and does not depend on all axes of a formula is a value of its own (`invariants`).
- Operators of constants are constants. Extents have the affine normal form. A choice between true and false is its
  condition, or the contrary; one between true or false and what is always in bounds is `or` or `and`.
- Axes have their canonical names (`AxisNames`), whatever loops and local arrays are called.
- Reductions and maps have their axes in the order of the maps that read them, of an operand of the contractions that
  do, or of the arrays that they read; reduced axes are in the order of the arrays that are read.
- The operands of commutative operators are in order, and comparisons are < and <= (`operand_order`); but what an output
  adds to itself, or is multiplied by, is the second.
- A reduction over a few parts that are written out is an operator of them (`short_reductions`).
- Values that no output needs are gone.
- Outputs are in the order of the parameters, and values in the order in which checks and outputs need them.
"""
from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from ..core.expr import Const, Expr, Op, Var
from ..core.monoids import identity
from ..core.node import Node, kept
from ..core.program import InOrder
from ..loop.affine import canonical
from ..loop.constant_folding import fold
from ..loop.statements import Fail
from .axis_order import with_ordered_axes, with_ordered_sums
from .common_parts import with_common_parts
from .fusion import why_stored
from .fusion_requests import values_asked_for
from .index_maps import (
    CHEAP,
    Uses,
    axes_of,
    cost,
    element,
    is_identity,
    is_once,
    is_small,
    renamed,
    uses_of,
    with_axis_names,
    with_reads,
)
from .invariants import with_invariants
from .nested_pieces import without_nested_pieces
from .operand_order import with_ordered_operands
from .short_reductions import without_short_reductions
from .values import (
    AxisNames,
    Compute,
    Define,
    FailIf,
    Indexed,
    Inside,
    Named,
    Nest,
    Output,
    Pieces,
    Read,
    Reduce,
    Scan,
    Scatter,
    TensorProgram,
    Value,
    ValueTable,
    names_in,
    operands_of,
    shapes_of,
    whole_operands_of,
    with_formulas,
)


def canonical_values(program: TensorProgram) -> TensorProgram:
    """The program in canonical form."""
    kept = values_asked_for(program)
    others = program.without(Define, FailIf, Output, Named)
    if _CANONICAL.holds(program, kept):
        return _put_together(others, program.all(Named), program.all(Define), program.checks, program.outputs)
    table = ValueTable(others)
    program = _folded(_in_order(_without_copies(program, kept)), table.axis_names)
    table.names.taken.update(*[names_in(d.value) for d in program.definitions if isinstance(d.value, Nest)])
    names: dict[str, str] = {}
    program = with_ordered_operands(_inlined(program, kept, _is_view), by_axes=False)
    stored = kept | frozenset(program.results)
    program = with_common_parts(_inlined(program, stored, _is_read_once), kept, table.axis_names)
    program = _inlined(_inlined(program, stored, _is_read_once), kept, _is_cheap)
    program = _inlined(with_invariants(program, kept, table.axis_names), stored, _is_read_once)
    program = with_ordered_sums(with_ordered_operands(with_ordered_axes(program, kept), by_axes=True))
    onto: dict[str, frozenset[str]] = {}
    for o in program.outputs:
        onto[o.value] = onto.get(o.value, frozenset()) | {o.name}
    settled = True
    for d in _needed(program):
        new = renamed(d.value, names)
        value = _as_update(new, onto.get(d.name, frozenset()))
        settled = settled and value is new               # what comes together with constants may leave others unused
        source = _whole_of(value, table.values)
        names |= dict(zip(d.names, table.define(value) if source is None else (source,), strict=True))
    named: dict[str, Named] = {}
    for n in program.all(Named):
        if n.value in names:
            named.setdefault(names[n.value], n.replace(value=names[n.value]))
    checks = tuple([c.renamed(names) for c in program.checks])
    outputs = tuple([o.replace(value=names.get(o.value, o.value)) for o in program.outputs])
    made = _put_together(others, tuple(named.values()), table.definitions, checks, outputs)
    if settled and _is_settled(made, kept, table.axis_names):
        _CANONICAL.add(made, kept)
    return made


def _is_settled(program: TensorProgram, kept: frozenset[str], names: AxisNames) -> bool:
    """Would the form of a program be itself? Formulas that have become large may have room for other maps since those
    are values, and their operands another order or common parts."""
    stored = kept | frozenset(program.results)
    inlined = _inlined(with_common_parts(_inlined(program, stored, _is_read_once), kept, names), kept, _is_cheap)
    return inlined.definitions == program.definitions == with_ordered_operands(program, by_axes=True).definitions


def _put_together(others: TensorProgram, *parts: tuple[Node, ...]) -> TensorProgram:
    return others.replace(clauses=(*others.clauses, *chain(*parts)))


class _Latest:
    """Which of the latest programs are in canonical form: a body over whole arrays has it when it is read, and again
    when its operator is lowered. Programs are not kept alive by this."""

    def __init__(self, most: int) -> None:
        self.most, self.lock = most, threading.Lock()
        self.programs: dict[int, tuple[tuple[weakref.ref[Node], ...], frozenset[str]]] = {}

    @staticmethod
    def parts(program: TensorProgram) -> tuple[Node, ...]:
        """All that the form of a program depends on, but for what requests to fusion name."""
        return (*program.all(Define), *program.all(FailIf), *program.all(Output), *program.all(Named),
                *program.buffers.values(), *program.all(InOrder))

    def holds(self, program: TensorProgram, kept: frozenset[str]) -> bool:
        parts = self.parts(program)
        known, asked = self.programs.get(id(parts[0]), ((), frozenset())) if parts else ((), frozenset())
        return len(known) == len(parts) > 0 and asked == kept and all(
            ref() is part for ref, part in zip(known, parts, strict=True))

    def add(self, program: TensorProgram, kept: frozenset[str]) -> None:
        if not (parts := self.parts(program)):
            return
        with self.lock:
            self.programs.pop(id(parts[0]), None)
            while len(self.programs) >= self.most:
                self.programs.pop(next(iter(self.programs)))
            self.programs[id(parts[0])] = tuple([weakref.ref(part) for part in parts]), kept


_CANONICAL = _Latest(256)
Test = Callable[[Compute, Uses, Mapping[str, Value], Mapping[str, Uses]], bool]


def _is_view(value: Compute, uses: Uses, values: Mapping[str, Value], readers: Mapping[str, Uses]) -> bool:
    return cost(value.expr) == 0 and why_stored(value, uses, values, readers) is None


def _is_read_once(value: Compute, uses: Uses, values: Mapping[str, Value], readers: Mapping[str, Uses]) -> bool:
    return _is_view(value, uses, values, readers) or (len(uses) == 1 and is_once(uses[0][1].index, uses[0][0]))


def _is_cheap(value: Compute, uses: Uses, values: Mapping[str, Value], readers: Mapping[str, Uses]) -> bool:
    return why_stored(value, uses, values, readers) is None


def _inlined(program: TensorProgram, kept: frozenset[str], is_part: Test) -> TensorProgram:
    """The program with the maps that pass a test in their readers; but for those that requests to fusion name. Outputs
    stay values, too."""
    needed = list(_needed(program))
    results = frozenset(program.results)
    inlining = _Inlining({d.name if d.names else f"({n})": d.value for n, d in enumerate(needed)},
                         results, kept, is_part)
    made = [d.replace(value=inlining.full.get(d.name, d.value) if d.names else d.value) for d in needed
            if not d.names or d.name in results or d.name not in inlining.maps]
    return program.replace(clauses=(*program.without(Define, FailIf, Output).clauses, *made, *program.checks,
                                    *program.outputs))


def _without_copies(program: TensorProgram, kept: frozenset[str]) -> TensorProgram:
    """The program with the outputs that are copies of a value set to that value."""
    values: dict[str, Value] = {}
    sources: dict[str, str] = {}
    for d in program.definitions:
        values |= dict.fromkeys(d.names, d.value)
        source = _whole_of(d.value, values)
        if source is not None and kept.isdisjoint((d.name, source)):
            sources[d.name] = sources.get(source, source)
    outputs = tuple([o.replace(value=sources.get(o.value, o.value)) for o in program.outputs])
    return program.replace(clauses=(*program.without(Output).clauses, *outputs)) if sources else program


def _whole_of(value: Value, values: Mapping[str, Value]) -> str | None:
    """The value of which a map is all elements, each at its own index."""
    match value:
        case Compute(dtype, axes, Read(source, index) as read) if index == tuple([a.var for a in axes]):
            made = values.get(source)
            if isinstance(made, Compute | Reduce | Scan) and read.type == dtype and made.axes == axes:
                return source
    return None


def _in_order(program: TensorProgram) -> TensorProgram:
    """The program with its outputs in the order of the parameters."""
    order = {name: n for n, name in enumerate(program.buffers)}
    outputs = sorted(program.outputs, key=lambda o: order[o.name])
    return program.replace(clauses=(*program.without(Output).clauses, *outputs))


def _folded(program: TensorProgram, names: AxisNames) -> TensorProgram:
    """The program with constants for operators of constants, and extents that are equal as sums of products written
    equally: what an output size is computed by decides neither the loops nor what shares them. Axes have their
    canonical names: where loops have a local array `p`, it is no value any more, and the name is free."""
    shapes = {b.name: b.shape for b in program.buffers.values()}
    for d in program.definitions:
        shapes |= zip(d.names, shapes_of(d.value), strict=True)
    made = {d: d if isinstance(d.value, Nest) else d.replace(value=_folded_value(
        with_axis_names(d.value, names), shapes)) for d in program.definitions}
    return program.replace(clauses=tuple([made[c] if isinstance(c, Define) else c for c in program.clauses]))


def _folded_value(value: Value, shapes: Mapping[str, tuple[Expr, ...]]) -> Value:
    extents = {a.name: a.extent for a in axes_of(value)} if isinstance(value, Indexed) else {}
    memo: dict[Expr, Expr] = {}

    def is_total(e: Expr) -> bool:
        """Is each element that it reads at an index of the axis which is as long as that of the array?"""
        return not any(isinstance(n, Inside | Pieces) or (isinstance(n, Read) and not all(
            isinstance(i, Var) and extents.get(i.name) is extent
            for i, extent in zip(n.index, shapes[n.buffer], strict=True))) for n in e.unique())

    def go(e: Expr) -> Expr:
        if e not in memo:
            memo[e] = _logic(fold(e.map(go)), is_total)
        return memo[e]
    return _mapped(value, lambda e: go(e) if _chooses(_folds(e)) else _folds(e))


@kept
def _folds(e: Expr) -> Expr:
    """An expression with constants for operators of constants."""
    return fold(e.map(_folds))


@kept
def _chooses(e: Node) -> bool:
    """Does an expression choose between conditions?"""
    return (isinstance(e, Op) and e.fn == "where" and e.dtype == "bool") or any(map(_chooses, e.children))


def _logic(e: Expr, is_total: Callable[[Expr], bool]) -> Expr:
    """A choice that is a condition by itself. What is read where a condition does not hold must be in bounds."""
    match e:
        case Op("where", (cond, Const(True, "bool"), Const(False, "bool"))):
            return cond
        case Op("where", (cond, Const(False, "bool"), Const(True, "bool"))):
            return Op("not", (cond,))
        case Op("where", (cond, Const(True, "bool"), other)) if is_total(other):
            return Op("or", (cond, other))
        case Op("where", (cond, other, Const(False, "bool"))) if is_total(other):
            return Op("and", (cond, other))
    return e


def _mapped(value: Value, change: Callable[[Expr], Expr]) -> Value:
    """A value with its formula and its condition changed, and its extents in affine normal form."""
    made = with_formulas(value, change)
    axes = {name: tuple([a.replace(extent=canonical(a.extent)) for a in getattr(value, name)])
            for name in ("axes", "over") if hasattr(value, name)
            and any(canonical(a.extent) is not a.extent for a in getattr(value, name))}
    shape = {"shape": tuple([canonical(e) for e in value.shape])} if isinstance(value, Scatter) else {}
    return made.replace(**axes, **shape) if axes or shape else made


def _as_update(value: Value, onto: frozenset[str]) -> Value:
    """Y + x for x + Y, Y * x for x * Y where the value is stored to Y. What has come together with constants is
    folded."""
    if isinstance(value, Nest):
        return value
    value = _mapped(value, _folds)
    match value:
        case Compute(expr=Op("add" | "mul", (x, Read() as old)) as e) if old.buffer in onto and is_identity(
                old, value) and not (isinstance(x, Read) and x.buffer == old.buffer):
            return value.replace(expr=e.replace(args=(old, x)))
    return value


def _needed(program: TensorProgram) -> Iterator[Define]:
    """The definitions that outputs and run-time checks need, each after those that it reads, in the order of need."""
    by_name = {name: d for d in program.definitions for name in d.names}
    roots = [d for d in program.definitions if isinstance(d.value, Nest)
             and any(isinstance(n, Fail) for s in d.value.stmts for n in s.walk())]
    results = [by_name[name] for name in program.results if name in by_name]
    stack = [(d, False) for d in reversed([*roots, *results])]
    seen: set[Define] = set()
    while stack:
        d, is_ready = stack.pop()
        if is_ready:
            yield d
        elif d not in seen:
            seen.add(d)
            stack.append((d, True))
            stack += [(by_name[name], False) for name in reversed(operands_of(d.value)) if name in by_name]


class _Inlining:
    """Which maps are part of their readers, and the readers with them."""

    def __init__(self, values: dict[str, Value], outputs: frozenset[str], kept: frozenset[str], is_part: Test) -> None:
        self.values, self.full = values, dict[str, Value]()
        uses = uses_of(values.values())
        opaque = kept.union(*[whole_operands_of(value) for value in values.values()])
        self.maps: set[str] = set()
        for name, value in values.items():
            made = value if self.maps.isdisjoint(operands_of(value)) else with_reads(value, self._element)
            made = without_short_reductions(without_nested_pieces(self._without_identities(made)))
            if isinstance(made, Compute) and name not in opaque and is_small(made.expr) and is_part(
                    made, uses.get(name, []), values, uses) and (name not in outputs or cost(made.expr) <= CHEAP):
                self.maps.add(name)
            self.full[name] = made

    def _without_identities(self, value: Value) -> Value:
        """e ∘ R = R ∘ e = R, if R is a reduce by ∘ and e its identity element."""
        match value:
            case Compute(expr=Op(fn, (Const() as e, Read() as total) | (Read() as total, Const() as e))):
                source = self.values.get(total.buffer)
                if isinstance(source, Reduce) and source.fn == fn and e is identity(fn, source.type):
                    return value.replace(expr=total)
        return value

    def _element(self, read: Read) -> Expr:
        value = self.full.get(read.buffer)
        return element(value, read.index) if read.buffer in self.maps and isinstance(value, Compute) else read
