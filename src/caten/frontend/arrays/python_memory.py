"""What statements of bodies in Python with loops over elements change.

Outputs, variables that are assigned several times and arrays that are no views are memory, and statements change it in
their order. All else is as in a body without such loops: a name that is assigned once may stand for a number, a size, a
tuple, a function or a view.
"""
from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from ...core.node import Node
from ...tensor.values import Read
from ..typing import WEAK_FLOAT, WEAK_INT, Term, Value
from .argument_binding import described, refuse_selected, unset
from .array_scope import ArrayScope, arrays_in
from .builder import Builder
from .elementwise_functions import apply, term_of
from .generators import generator_of, loop_of
from .handles import Array, Operand, Selected, Unset, dtype_of
from .loop_expressions import LoopExpressions, Variable
from .loop_statements import LoopStatements
from .masked_elements import mask_in
from .numpy_promotion import is_number_of_python
from .python_expressions import UserFunction
from .python_source import PythonSource
from .python_statements import (
    PythonStatements,
    changes_elements,
    is_list_of_positions,
    may_change_arrays,
    parts_for,
)
from .selection import select
from .slice_assignment import store_of_mask

MOST_STATEMENTS = 4096                # whose names are kept: a body is read several times
ACCUMULATIONS: dict[type[ast.operator], tuple[str, bool]] = {      # the monoid; is the operand negated?
    ast.Add: ("add", False), ast.Sub: ("add", True), ast.Mult: ("mul", False)}


class PythonMemory(PythonStatements):
    """Statements that change memory. `kinds`: the types of variables, by what is known from the readings before.
    `negative`: those that may be negative."""

    over_elements = True

    def __init__(self, builder: Builder, source: PythonSource, scope: ArrayScope, params: Sequence[Node],
                 kinds: dict[tuple[int, str], str], negative: set[tuple[int, str]]) -> None:
        super().__init__(builder, source, scope)
        self.expressions: LoopExpressions = LoopExpressions(self, builder, source, scope, self.call,
                                                            self.generated)
        self.made = LoopStatements(builder, params, builder.table)
        self.kinds, self.negative = kinds, negative
        self.written: set[str] = set()                  # the outputs that a statement sets
        self.ended: dict[str, str] = {}                 # names that are no longer set, and what set them
        self.depth = 0                                  # of loops over elements
        self.siblings: dict[str, Variable] = {}         # variables that the other branch of this `if` has declared
        self.homes: dict[str, int] = {}                 # the depth at which an array in memory was made
        self.frame = 1                                  # how many blocks were open when this function was called
        self.unrolled = 1                               # and when the innermost loop that is unrolled began
        self.assignments = assignments_in(source.body)
        self.bodies: list[list[ast.stmt]] = []                  # of the loops around the statement

    def run(self) -> tuple[Any, ...] | None:
        """Evaluate the body, and set the outputs to what it returns."""
        returned = super().run()
        b = self.expressions.builder.at(self.end)
        if returned is not None:
            self.set_outputs(b, returned)
        for name in self.scope.outputs:
            # The elements of an argument that is changed in place may be set in a loop without iterations alone.
            if name not in self.written and not (self.scope.buffers[name].access == "inout"
                                                 and name in changed_arrays(self.source.body)):
                b.fail("E228", f"the output '{name}' is never written", "assign it, or take it off the outputs")
        return None

    def names_at_start(self, function: UserFunction, given: dict[str, Any]) -> dict[str, Any]:
        """What a function assigns is its own, and not what has that name around it."""
        if isinstance(function.body, list) and (
                may_change_arrays(function.body) or any(map(self.expressions.has_effects, function.body))):
            given = {name: self.kept(self.expressions.builder, value) for name, value in given.items()}
        own = assignments_in(function.body) if isinstance(function.body, list) else {}
        return {name: value for name, value in function.closure.items() if name not in own} | given

    def call(self, function: UserFunction, given: dict[str, Any]) -> Any:
        """The result of a function of the body, whose variables and arrays are its own."""
        outer = self.siblings, self.homes, self.frame
        self.siblings, self.homes, self.frame = {}, {}, len(self.made.blocks)
        try:
            return super().call(function, given)
        finally:
            self.siblings, self.homes, self.frame = outer

    def generated(self, node: ast.Call) -> Any:
        """`sum(… for i in range(N))` by a loop before the statement."""
        generator = generator_of(node, self.expressions)
        if generator is None:
            return None
        name = f"{getattr(node.func, 'id', '')}_{self.source.position(node)}"
        self.assignments[name] = 2
        self.block(loop_of(node, generator, name))
        return self.expressions.eval(ast.copy_location(ast.Name(name, ast.Load()), node))

    def set_outputs(self, b: Builder, returned: Sequence[Any]) -> None:
        """The outputs are the returned values, by position."""
        outputs = self.scope.returned_outputs(b, len(returned))
        fitting = [None if isinstance(value, Unset | Array) and value.name == name else self.fitting(b, name, value)
                   for name, value in zip(outputs, returned, strict=True)]
        if len(outputs) > 1:                            # an output may be what another one was
            fitting = [None if value is None else self.in_memory(b, f"{name}_result", value)
                       for name, value in zip(outputs, fitting, strict=True)]
        for name, value in zip(outputs, fitting, strict=True):
            if value is not None:
                self.set_output(b, name, value)

    # variables

    def read(self, variable: Variable, pos: int) -> Term:
        """The number that a variable holds; weak while only weak numbers are assigned to it."""
        kind = self.kinds[variable.key]
        b = self.expressions.builder
        expr = Read(variable.name, (), b.typing.storage(kind))
        if kind in (WEAK_INT, "i64") and variable.key not in self.negative:
            b.sizes.never_negative.add(expr)
        return Value(kind, pos, expr=expr)

    def declare(self, b: Builder, name: str, term: Term, pos: int) -> Variable:
        """A variable for the numbers that a name stands for."""
        variable = self.siblings.get(name)
        if variable is None:
            key = pos, name
            self.kinds.setdefault(key, term.kind)
            variable = Variable(self.made.local(name, b.typing.storage(self.kinds[key]), (), b), key)
        self.scope.values[name] = variable
        return variable

    def change(self, b: Builder, name: str, variable: Variable, value: Operand) -> None:
        """Give a variable a number."""
        term = b.term(value, ())
        old = self.kinds[variable.key]
        self.kinds[variable.key] = b.typing.join_kinds(old, term.kind, term.pos, f"the variable '{name}'")
        self.note_sign(b, variable, term)
        self.made.store(b, Array(variable.name, b.typing.storage(self.kinds[variable.key]), ()), value)

    def note_sign(self, b: Builder, variable: Variable, term: Term) -> None:
        """A number that a variable is given, or that is added to it or multiplied with it."""
        if self.kinds[variable.key] in (WEAK_INT, "i64") and not b.is_never_negative(b.typing.default(term)):
            self.negative.add(variable.key)

    def in_memory(self, b: Builder, wanted: str, value: Operand) -> Array:
        """A value of its own in memory."""
        array = b.array(value)
        computed = self.made.computed(wanted, array.name)
        if computed is not None:
            return Array(computed, array.dtype, array.shape)
        made = Array(self.made.local(wanted, array.dtype, array.shape, b), array.dtype, array.shape)
        self.made.store(b, made, array)
        return made

    def set_output(self, b: Builder, name: str, value: Array) -> None:
        """Set all elements of an output."""
        param = self.scope.buffers[name]
        whole = self.scope.params[name]
        self.made.store(b, Array(name, param.type, whole.shape), value)
        self.written.add(name)
        self.scope.values[name] = Array(name, param.type, whole.shape)

    def fitting(self, b: Builder, name: str, value: Any) -> Array:
        """A value as that of an output."""
        if isinstance(value, Variable):
            value = self.read(value, b.pos)
        return self.scope.fitting(b, name, value)

    # assignments

    def assign(self, node: ast.Assign) -> None:
        value = self.expressions.eval(node.value)
        b, (first, *others) = self.expressions.at(node.value), node.targets
        if (isinstance(first, ast.Tuple | ast.List) and isinstance(value, tuple | list)
                and len(value) == len(first.elts)):
            own = [target.id for target, each in zip(first.elts, value, strict=True) if isinstance(target, ast.Name)
                   and not self.is_same_memory(each, self.scope.values.get(target.id))]
            for target, each in zip(first.elts, value, strict=True):
                if isinstance(target, ast.Name) and target.id in self.homes:
                    self.check_shared(b, target.id, each, own)
            value = type(value)([self.held(b, each) if isinstance(target, ast.Name) and target.id in self.homes else
                                 self.kept(b, each) for target, each in zip(first.elts, value, strict=True)])
        elif others:
            value = self.kept(b, value)
        for target in node.targets:
            self.store(target, value, node.value)

    def held(self, b: Builder, value: Any) -> Any:
        """What changes no more, for a name that keeps its memory: `a, b = b, a`."""
        if isinstance(value, Term) and not self.stays(b, value):
            name = self.made.local("held", b.typing.storage(value.kind), (), b)
            self.made.store(b, Array(name, b.typing.storage(value.kind), ()), value)
            expr = Read(name, (), b.typing.storage(value.kind))
            if b.is_never_negative(b.typing.default(value)):
                b.sizes.never_negative.add(expr)
            if is_number_of_python(value, b.counts):
                b.counts.add(name)
            return Value(value.kind, b.pos, expr=expr)
        return self.in_memory(b, "held", value) if isinstance(value, Array) else value

    def kept(self, b: Builder, value: Any) -> Any:
        """The items of a list as they are now: what is computed from memory, which may change before it is used, gets
        memory of its own."""
        if isinstance(value, list | tuple):
            once = {id(each): self.kept(b, each) for each in value}      # an array that is in it twice stays one
            kept = [once[id(each)] for each in value]
            if isinstance(value, tuple):
                return tuple(kept)
            value[:] = kept                                              # it may have other names
            return value
        if isinstance(value, Selected):                                  # a copy, as in NumPy
            return replace(value, array=self.in_memory(b, "held", value.array),
                           mask=self.in_memory(b, "held", value.mask))
        if isinstance(value, Array) and value.rank and not value.copied and (
                value.root.name in self.made.memory and not self.changes(value)):
            return value                                                 # a view shares its elements
        operand = None if isinstance(value, str | bool | int | float) else term_of(value, b.pos)
        if isinstance(operand, Array) and not operand.rank:
            operand = b.term(operand, ())
        return value if operand is None else self.held(b, operand)

    def kept_items(self, node: ast.For, items: list[Any]) -> list[Any]:
        return [self.kept(self.expressions.at(node.iter), each) for each in items] if changes_elements(
            node.body) else items

    def name(self, node: ast.AST, name: str, value: Any, written: ast.expr) -> None:
        """`name = value`."""
        ex = self.expressions
        b = ex.at(written)
        if name in self.scope.sizes:
            self.check_size(node, name, value)
            return
        if isinstance(value, Unset):
            unset(b, value)
        old = self.scope.values.get(name)
        if self.is_output(name):
            self.check_alone(ex.at(node), name, name)
            self.set_output(b, name, self.fitting(b, name, value))
            return
        operand = None if isinstance(value, tuple | list | str) else term_of(value, b.pos)
        if operand is None:
            self.scope.values[name] = self.kept(b, value)
        elif isinstance(operand, Array) and operand.rank:
            self.name_array(b, name, old, operand)
        elif isinstance(old, Variable):
            self.change(b, name, old, operand)
        elif isinstance(operand, Term) and self.is_set_once(name) and self.stays(b, operand):
            self.scope.values[name] = value
        else:
            variable = self.declare(b, name, b.term(operand, ()), ex.source.position(node))
            self.change(b, name, variable, operand)

    def is_set_once(self, name: str) -> bool:
        """Does only this statement give the name a value, in the body, or in an iteration of the loop around it?"""
        inside = self.bodies[-1] if self.bodies and not self.calls and name not in self.scope.values else ()
        return self.assignments[name] == 1 or assignments_in(inside)[name] == 1

    def stays(self, b: Builder, term: Term) -> bool:
        """Is it arithmetic over sizes and variables of loops, which is the same wherever it is computed?"""
        return not any(isinstance(n, Read) for n in b.typing.default(term).unique())

    def name_array(self, b: Builder, name: str, old: Any, value: Array) -> None:
        """An array gets a name. Inside a loop, one that was made before the loop is memory that stays."""
        if isinstance(old, Array) and name in self.homes and self.homes[name] < self.depth:
            b.same_shape(value.shape, old.shape, f"'{name}', which is from before this loop,")
            self.check_alone(b, name, old.name)
            self.check_shared(b, name, value, ())
            self.made.store(b, old, value)
            return
        is_view = value.root.name in self.made.memory and value.base is not None and not self.changes(value)
        is_memory = value.name in self.made.memory and not value.copied
        if is_view or is_memory:
            self.scope.values[name] = value
            self.homes.pop(name, None)
            return
        self.scope.values[name] = self.in_memory(b, name, value)
        self.homes[name] = self.depth

    def check_alone(self, b: Builder, name: str, memory: str) -> None:
        """E245 if an array that is set as a whole is seen under another name, which in Python would keep what it is."""
        for other, value in self.scope.values.items():
            if other != name and any(each.root.name == memory for each in arrays_in(value) if isinstance(each, Array)):
                b.fail("E245", f"'{name}' and '{other}' share their elements: this changes both",
                       f"give one of them elements of its own: {other}.copy()")

    def is_same_memory(self, x: Any, y: Any) -> bool:
        """Are both views of one array?"""
        return isinstance(x, Array) and isinstance(y, Array) and x.root.name == y.root.name

    def check_shared(self, b: Builder, name: str, value: Any, own: Sequence[str],
                     body: Sequence[ast.stmt] = ()) -> None:
        """E245 if a name that keeps its memory gets elements that have another name, which in Python would be shared,
        and the loop changes some of them. `own`: the names that get other arrays in the same statement. `body`: of a
        loop that begins."""
        if not isinstance(value, Array) or not value.rank or value.copied or value.root.name not in self.made.memory:
            return
        changed = {each for body in (*self.bodies, body) for each in changed_arrays(body)}
        for other, held in self.scope.values.items():
            if other != name and other not in own and self.is_same_memory(held, value) and changed & {
                    name, other} and not self.is_replaced(name, other):
                b.fail("E245", f"'{name}' and '{other}' would share their elements: a change is one of both",
                       f"give one of them elements of its own: {other}.copy()")

    def is_replaced(self, name: str, other: str) -> bool:
        """Does `name = other` in a loop give away an array that is not seen as `other` again? Each iteration then gives
        this name another array before anything else, and nothing outside of the loop has it."""
        body = list(self.bodies[-1]) if self.bodies else []
        found = [n for n, s in enumerate(body) if isinstance(s, ast.Assign) and isinstance(s.value, ast.Name)
                 and s.value.id == other and [getattr(target, "id", "") for target in s.targets] == [name]]
        if len(found) != 1:
            return False
        (at,) = found
        following = [s for s in (*body[at + 1:], *body[:at]) if reads_of_name(s, other) or assignments_in([s])[other]]
        first = following[0] if following else None
        inside = sum([reads_of_name(s, other) for s in body])
        return (isinstance(first, ast.Assign) and [getattr(t, "id", "") for t in first.targets] == [other]
                and not reads_of_name(first, other)
                and sum([reads_of_name(s, other) for s in self.source.body]) == inside)

    def changes(self, view: Array) -> bool:
        """Does it depend on variables which elements a view has?"""
        element = self.expressions.builder.table.values.get(view.name)
        return element is not None and any(
            isinstance(n, Read) for r in element.unique() if isinstance(r, Read) for i in r.index for n in i.unique())

    def element(self, target: ast.Subscript, value: Any, written: ast.expr) -> None:
        """`name[…] = value`."""
        ex = self.expressions
        root = target.value
        while isinstance(root, ast.Subscript):
            root = root.value
        if root is not target.value and isinstance(root, ast.Name) and isinstance(
                unread := self.scope.values.get(root.id), Unset):          # y[i][j]: a view of what is not set yet
            self.scope.values[root.id] = Array(unread.name, unread.dtype, unread.shape)
        old = ex.eval(target.value)
        if isinstance(old, list):
            super().element(target, value, written)
            return
        if isinstance(old, Unset):
            old = Array(old.name, old.dtype, old.shape)
        if not isinstance(old, Array):
            ex.fail(target, "E311", f"'{ast.unparse(target.value)}' is {described(old)}: it has no elements")
        b, at = ex.at(target), ex.eval(target.slice)
        if is_list_of_positions(at):
            for position, each in zip(at, parts_for(b, self.kept(b, value), len(at)), strict=True):
                self.stored(b, self.made.store(b, select(ex.at(target.slice), old, position),
                                               ex.as_operand(written, each), at=ex.at(written)))
            return
        given = value if isinstance(value, Selected) else ex.as_operand(written, value)
        if mask_in(at) is not None:
            at, given = store_of_mask(b, old, at, given)
        elif isinstance(given, Selected):
            refuse_selected(b)
        new = self.made.store(b, select(ex.at(target.slice), old, at), given, at=ex.at(written))
        self.stored(b, new)

    def stored(self, b: Builder, name: str) -> None:
        """An array has changed. E225 if it is an input."""
        param = self.scope.buffers.get(name)
        if param is not None and param.access == "in":
            b.fail("E225", f"'{name}' is an input and no output: it cannot be changed",
                   f"take a new name, or list \"{name}\" among the outputs")
        if param is not None:
            self.written.add(name)
            if isinstance(self.scope.values.get(name), Unset):
                self.scope.values[name] = Array(name, param.type, self.scope.params[name].shape)

    def augmented(self, node: ast.AugAssign) -> None:
        """`target op= value`: sums and products are accumulations."""
        ex, target = self.expressions, node.target
        if not isinstance(target, ast.Name | ast.Subscript):
            ex.fail(target, "E244", "only a name or a part of an array can be assigned")
        owner = ex.eval(target.value if isinstance(target, ast.Subscript) else target)
        if isinstance(owner, Unset):
            unset(ex.at(target), owner)
        b = ex.at(node)
        if isinstance(owner, list):
            super().augmented(node)
            return
        if isinstance(target, ast.Subscript) and ex.has_effects(node.value):      # the old element is read first
            old = self.kept(ex.at(target), ex.eval(target))
            self.element(target, ex.combine(node, node.op, old, ex.eval(node.value), target, node.value), node.value)
            return
        given = ex.eval(node.value)
        if isinstance(target, ast.Subscript) and isinstance(place := ex.eval(target), Selected):
            self.element(target, ex.combine(node, node.op, place, given, target, node.value), node.value)
            return
        value = ex.as_operand(node.value, given)
        fn, negated = ACCUMULATIONS.get(type(node.op), ("", False))
        old = self.scope.values.get(target.id) if isinstance(target, ast.Name) else None
        if isinstance(target, ast.Subscript) or (isinstance(owner, Array) and owner.rank) or (
                isinstance(target, ast.Name) and self.is_output(target.id)):
            place = ex.eval(target)
            at_positions = isinstance(target, ast.Subscript) and _has_positions(ex.eval(target.slice))
            accumulates = bool(fn) and not at_positions and dtype_of(value) in (WEAK_INT, WEAK_FLOAT, place.dtype)
            new = value if accumulates else ex.combine(node, node.op, place, value, target, node.value)
            if at_positions:                            # an element that has several of them is changed once
                new = self.kept(b, new)
            if accumulates and negated:
                new = apply(b, "neg", value)
            self.stored(b, self.made.store(b, place, new, fn if accumulates else ""))
        elif isinstance(old, Variable):
            term = b.term(value, ())
            kind = self.kinds[old.key] = b.typing.join_kinds(self.kinds[old.key], term.kind, b.pos,
                                                             f"the variable '{target.id}'")
            if fn:
                change = apply(b, "neg", value) if negated else value
                self.note_sign(b, old, b.term(change, ()))
                self.made.store(b, Array(old.name, b.typing.storage(kind), ()), change, fn)
            else:
                self.change(b, target.id, old, ex.combine(node, node.op, owner, value, target, node.value))
        else:
            self.name(target, target.id, ex.combine(node, node.op, owner, value, target, node.value), node.value)

    def accumulate_at(self, node: ast.Call, method: ast.Attribute) -> None:
        before = dict(self.scope.values)
        super().accumulate_at(node, method)
        (target,) = [k for k, v in self.scope.values.items() if v is not before.get(k)]
        new, old = self.scope.values[target], before[target]
        b = self.expressions.at(node)
        self.scope.values[target] = old
        self.stored(b, self.made.store(b, Array(old.name, old.dtype, old.shape), new))


def assignments_in(statements: Sequence[ast.AST]) -> Counter[str]:
    """How often statements give each name a value: twice where it depends on what it was."""
    return Counter([name for statement in statements for name in _names(statement).assigned])


def reads_of_name(statement: ast.AST, name: str) -> int:
    """How often a statement has the value of a name, of which it may change elements."""
    return len([n for n in ast.walk(statement)
                if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)])


def bindings_in(statements: Sequence[ast.AST]) -> Counter[str]:
    """How often statements make a name stand for another array: `x += 1` changes the one that it has."""
    return Counter([name for statement in statements for name in _names(statement).bound])


def _has_positions(at: Any) -> bool:
    """Is an array of integers, or a list, among the parts of an index?"""
    return any(isinstance(part, list) or (isinstance(part, Array) and part.rank and part.dtype != "bool")
               for part in (at if isinstance(at, tuple) else (at,)))


def changed_arrays(statements: Sequence[ast.AST]) -> set[str]:
    """The names of arrays whose elements statements assign."""
    return {name for statement in statements for name in _names(statement).changed}


class _Names(NamedTuple):
    """The names in a statement: those that are given values, twice by `x += 1`; those that it binds; those of arrays
    whose elements it may change."""

    assigned: tuple[str, ...]
    bound: tuple[str, ...]
    changed: tuple[str, ...]


@lru_cache(maxsize=MOST_STATEMENTS)
def _names(statement: ast.AST) -> _Names:
    nodes = list(ast.walk(statement))
    stored = [n for n in nodes if isinstance(n, ast.Name | ast.Subscript) and isinstance(n.ctx, ast.Store)]
    augmented = {n.target for n in nodes if isinstance(n, ast.AugAssign)}
    names = [n for n in stored if isinstance(n, ast.Name)]
    elements = [n.value.id for n in stored if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name)]
    return _Names(tuple([n.id for n in names for _ in range(2 if n in augmented else 1)]),
                  tuple([n.id for n in names if n not in augmented]),
                  (*[n.id for n in names if n in augmented], *elements))
