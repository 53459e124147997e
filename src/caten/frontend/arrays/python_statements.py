"""Statements of bodies in Python: assignments, and control that is known when the body is compiled, unrolled."""
from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ...core.expr import Var
from ...errors import CatenError, amount, did_you_mean
from ...tensor.values import Read
from ..typing import Term, Value
from .argument_binding import Function, described, unset
from .array_scatters import AT, accumulate_at
from .array_scope import ArrayScope
from .builder import Builder
from .elementwise_functions import term_of
from .generators import generator_of
from .handles import Array, NeedsLoops, Selected, Unset, constant_of
from .masked_elements import mask_in
from .python_builtins import AllIndices, UnknownRange
from .python_expressions import PythonExpressions, UserFunction
from .python_iteration import ITERATORS, call_of
from .python_source import PythonSource
from .selection import select
from .slice_assignment import assign
from .subscripts import Gathered, Listed, items_of

MOST_UNROLLED = 16             # iterations of nested loops over known numbers that change elements of arrays
MOST_WITHOUT_STORES = 256      # iterations of one that does not


class _Jump(Exception):
    """`break` (True) or `continue` of the innermost unrolled loop."""

    def __init__(self, leaves: bool) -> None:
        self.leaves = leaves


class Returned(Exception):
    """`return value`"""

    def __init__(self, value: Any) -> None:
        self.value = value


def _returned_otherwise(body: Sequence[ast.stmt], scope: ArrayScope) -> frozenset[str]:
    """The outputs for which a body returns something else than the variable of their name: that is a variable of its
    own, of any type and shape. Not so arrays of the caller's, which the body changes."""
    returned = [n.value for n in body if isinstance(n, ast.Return) and n.value is not None]
    parts = [part for value in returned
             for part in (value.elts if isinstance(value, ast.Tuple | ast.List) else [value])]
    own = {part.id for part in parts if isinstance(part, ast.Name)}
    return frozenset([name for name in scope.outputs
                      if parts and name not in own and scope.buffers[name].access == "out"])


class PythonStatements:
    """Evaluates the statements of one body."""

    over_elements = False                    # may it have loops over elements?

    def __init__(self, builder: Builder, source: PythonSource, scope: ArrayScope) -> None:
        self.source, self.scope = source, scope
        self.expressions = PythonExpressions(builder, source, scope, self.call, self.generated)
        self.calls = 0                       # of functions of the body that are being evaluated
        self.loops = 0                       # around the statement, in the same function
        self.iterations = 1                  # of all loops around it
        self.handlers = HANDLERS
        self.variables = _returned_otherwise(source.body, scope)

    def run(self) -> tuple[Any, ...] | None:
        """Evaluate the body: what it returns, or None. `end`: the offset of the `return`."""
        self.end = 0
        try:
            self.block(self.source.body)
        except Returned as end:
            if end.value is not None:
                return tuple(end.value) if isinstance(end.value, tuple | list) else (end.value,)
        return None

    def call(self, function: UserFunction, given: dict[str, Any]) -> Any:
        """The result of a function of the body. Its assignments are its own."""
        outer, loops = self.scope.values, self.loops
        self.scope.suspended.append(outer)
        self.scope.values = self.names_at_start(function, given)
        self.calls, self.loops = self.calls + 1, 0
        try:
            if isinstance(function.body, ast.expr):
                return self.expressions.eval(function.body)
            self.block(function.body)
        except Returned as end:
            return end.value
        finally:
            self.scope.values = self.scope.suspended.pop()
            self.calls, self.loops = self.calls - 1, loops
        return None

    def generated(self, node: ast.Call) -> Any:
        """`sum(… for i in range(N))`, if it is one; None if it is another call."""
        if generator_of(node, self.expressions) is not None:
            raise NeedsLoops(node)
        return None

    def names_at_start(self, function: UserFunction, given: dict[str, Any]) -> dict[str, Any]:
        """What a function of the body sees when it is called."""
        return {**function.closure, **given}

    def block(self, statements: Sequence[ast.stmt]) -> None:
        """Evaluate statements in order."""
        for statement in statements:
            self.expressions.count(statement)
            handler = self.handlers.get(type(statement))
            if handler is None:
                self.refuse(statement)
            handler(self, statement)

    def refuse(self, node: ast.stmt) -> NoReturn:
        """E240 for loops without a known end, E244 for what a body cannot use."""
        if isinstance(node, ast.While):
            self.expressions.fail(node, "E240", "there is no 'while': every loop runs a number of times that is known "
                                  "when it starts", "for k in range(limit): … if condition: break")
        word = {"Import": "import", "ImportFrom": "import", "ClassDef": "class", "AsyncFunctionDef": "async",
                "Delete": "del"}.get(type(node).__name__, type(node).__name__.lower())
        self.expressions.fail(node, "E244", f"a body cannot use '{word}'",
                              "np is known without an import" if word == "import" else None)

    # assignments

    def assign(self, node: ast.Assign) -> None:
        value = self.expressions.eval(node.value)
        for target in node.targets:
            self.store(target, value, node.value)

    def annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.store(node.target, self.expressions.eval(node.value), node.value)

    def store(self, target: ast.expr, value: Any, written: ast.expr) -> None:
        """Give a value to a target."""
        match target:
            case ast.Name(id=name):
                self.name(target, name, value, written)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                items = self.expressions.sequence(written, value)
                starred = next((n for n, part in enumerate(targets) if isinstance(part, ast.Starred)), None)
                if starred is not None and len(items) >= len(targets) - 1:
                    after = starred + 1 + len(items) - len(targets)
                    items = [*items[:starred], list(items[starred:after]), *items[after:]]
                    targets = [part.value if isinstance(part, ast.Starred) else part for part in targets]
                if len(items) != len(targets):
                    self.expressions.fail(target, "E229", f"{amount(len(items), 'value')} for "
                                                          f"{amount(len(targets), 'name')}")
                waiting = self.scope.waiting
                for n, (part, item) in enumerate(zip(targets, items, strict=True)):
                    self.scope.waiting = [*waiting, *items[n + 1:]]
                    self.store(part, item, written)
                self.scope.waiting = waiting
            case ast.Subscript():
                self.element(target, value, written)
            case _:
                self.expressions.fail(target, "E244", "only a name or a part of an array can be assigned")

    def name(self, node: ast.AST, name: str, value: Any, written: ast.expr) -> None:
        """`name = value`. An output takes arrays and numbers of its type and shape."""
        if name in self.scope.sizes:
            self.check_size(node, name, value)
            return
        if isinstance(value, Unset):
            unset(self.expressions.at(written), value)
        if self.is_output(name):
            value = self.scope.fitting(self.expressions.at(written), name, value)
        self.scope.values[name] = value

    def check_size(self, node: ast.AST, name: str, value: Any) -> None:
        """E226, unless a size is assigned its own value, `M, N = x.shape`."""
        term = term_of(value, 0) if not isinstance(value, tuple | list | str) else None
        if not isinstance(term, Value) or term.expr is not Var(name, "i64"):
            self.expressions.fail(node, "E226", f"'{name}' is a size and cannot be assigned another value",
                                  "take another name")

    def is_output(self, name: str) -> bool:
        """Is this the name of an output, and no variable?"""
        return name in self.scope.outputs and not self.calls and name not in self.variables

    def element(self, target: ast.Subscript, value: Any, written: ast.expr) -> None:
        """`name[…] = value`."""
        if not isinstance(target.value, ast.Name):
            raise NeedsLoops(target)                       # the elements of a view
        name = target.value.id
        old = self.expressions.eval(target.value)
        if isinstance(old, list):
            at = self.expressions.eval(target.slice)
            if not isinstance(at, int) or not -len(old) <= at < len(old):
                self.expressions.fail(target, "E323", f"a list of {len(old)} has no such element")
            old[at] = self.kept(self.expressions.at(written), value)
            return
        if not isinstance(old, Array | Unset):
            self.expressions.fail(target, "E311", f"'{name}' is {described(old)}: it has no elements")
        b = self.expressions.at(target)
        self.check_change(target, b, name, old)
        at = self.expressions.eval(target.slice)
        if is_list_of_positions(at):
            for position, each in zip(at, parts_for(b, value, len(at)), strict=True):
                changed = assign(b, old, position, self.expressions.as_operand(written, each))
                old = Array(changed.name, changed.dtype, changed.shape)
            self.scope.values[name] = old
            return
        if mask_in(at) is None and any(isinstance(i, Gathered | Listed) for i in items_of(
                b, Array(old.name, old.dtype, old.shape), at)):
            raise NeedsLoops(target)                       # of equal indices the last one counts: an order
        operand = value if isinstance(value, Selected) else self.expressions.as_operand(written, value)
        self.scope.values[name] = assign(b, old, at, operand)

    def check_change(self, node: ast.AST, b: Builder, name: str, array: Any) -> None:
        """May the elements of an array change here? Values have no elements that two names share: memory has."""
        try:
            self.scope.check_change(b, name, array)
        except CatenError as problem:
            if self.over_elements or {d.code for d in problem.diagnostics} != {"E245"}:
                raise
            raise NeedsLoops(node) from None

    def augmented(self, node: ast.AugAssign) -> None:
        """`target op= value`: on an array in place, so its type and shape stay."""
        ex, target = self.expressions, node.target
        if not isinstance(target, ast.Name | ast.Subscript):
            ex.fail(target, "E244", "only a name or a part of an array can be assigned")
        old = ex.eval(target)
        if isinstance(old, Unset):
            unset(ex.at(target), old)
        value = ex.eval(node.value)
        if isinstance(old, list) and isinstance(value, tuple | list) and isinstance(node.op, ast.Add):
            old.extend(value)
            return
        new = ex.combine(node, node.op, old, value, target, node.value)
        if isinstance(target, ast.Subscript):
            if isinstance(old, Array) and isinstance(target.value, ast.Name) and isinstance(
                    self.scope.values.get(target.value.id), list):
                self.check_change(node, ex.at(node), target.value.id, old)
                new = self._in_place(ex.at(node), target.value.id, old, new)
            self.element(target, new, node.value)
            return
        if isinstance(old, Array):
            self.check_change(node, ex.at(node), target.id, old)
            new = self._in_place(ex.at(node), target.id, old, new)
        self.scope.values[target.id] = new

    def _in_place(self, b: Builder, name: str, old: Array, new: Any) -> Array:
        operand = term_of(new, b.pos)
        assert operand is not None
        return assign(b, Array(name, old.dtype, old.shape), Ellipsis, operand)

    # control

    def choice(self, node: ast.If) -> None:
        ex, is_number = self.expressions, True
        try:
            test = ex.eval(node.test)
            is_number = isinstance(test, Term) or (isinstance(test, Array) and not test.rank)
            holds = ex.as_truth(node.test, test)
        except CatenError as problem:
            if is_number and {d.code for d in problem.diagnostics} == {"E326"}:
                raise NeedsLoops(node) from None           # a statement of each call
            raise
        self.block(node.body if holds else node.orelse)

    def loop(self, node: ast.For) -> None:
        if self._counts_arrays(node.iter):
            raise NeedsLoops(node)
        items = self.expressions.eval(node.iter)
        symbolic = isinstance(items, Array) and items.rank and constant_of(items.shape[0]) is None
        most = MOST_UNROLLED // self.iterations if changes_elements(node.body) else MOST_WITHOUT_STORES
        if isinstance(items, UnknownRange | AllIndices) or symbolic or (isinstance(items, range) and len(items) > most):
            raise NeedsLoops(node)
        repeated, outside = self.expressions.sequence(node.iter, items), self.iterations
        for item in self.kept_items(node, repeated):
            self.store(node.target, item, node.iter)
            self.loops, self.iterations = self.loops + 1, outside * len(repeated)
            try:
                self.block(node.body)
            except _Jump as jump:
                if jump.leaves:
                    return
            except CatenError as problem:
                if not self.over_elements and {d.code for d in problem.diagnostics} == {"E327"}:
                    raise NeedsLoops(node) from None           # such as Z[index[p]] = …
                raise
            finally:
                self.loops, self.iterations = self.loops - 1, outside
        self.block(node.orelse)

    def kept_items(self, node: ast.For, items: list[Any]) -> list[Any]:
        """The items of a list as they are before the loop over it: values do not change."""
        return items

    def kept(self, b: Builder, value: Any) -> Any:
        """An item of a list as it is now: values do not change."""
        return value

    def _counts_arrays(self, node: ast.expr) -> bool:
        """Is it `enumerate`, `zip` or `reversed` of arrays, or of ranges over sizes?"""
        call = call_of(node, ITERATORS, self.expressions)
        return call is not None and any(
            self._counts_arrays(a) or (call_of(a, ITERATORS, self.expressions) is None and isinstance(
                self.expressions.eval(a), Array | UnknownRange)) for a in call.args)

    def define(self, node: ast.FunctionDef) -> None:
        if node.decorator_list:
            self.expressions.fail(node, "E244", "a function of a body has no decorators")
        self.scope.values[node.name] = self.expressions.defined(node, node.name, node.body)

    def expression(self, node: ast.Expr) -> None:
        value = node.value
        if isinstance(value, ast.Constant) and (isinstance(value.value, str) or value.value is Ellipsis):
            return
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "at":
            self.accumulate_at(value, value.func)
            return
        made = self.expressions.eval(value)
        if not isinstance(value, ast.Call) or made is not None:
            self.expressions.fail(value, "E224", "the value of this expression is not used", "assign or return it")

    def asserted(self, node: ast.Assert) -> None:
        """A condition on sizes is one of every call. One on attributes refuses their values: E675."""
        ex = self.expressions
        value = ex.eval(node.test)
        cond = ex.builder.typing.default(value) if isinstance(value, Term) else None
        if isinstance(value, Array | Selected) or (cond is not None and any(
                isinstance(n, Read) or (isinstance(n, Var) and n.name not in self.scope.sizes) for n in cond.unique())):
            ex.fail(node.test, "E244", "an assertion of a body is on sizes and on what is known when it is compiled")
        if cond is not None and cond.dtype == "bool":
            ex.at(node.test).require(cond, "E326", "this assertion never holds")
        elif not value:
            told = None if node.msg is None else ex.eval(node.msg)
            if self.scope.attributes_in(node.test):
                ex.fail(node.test, "E675", *self.refusal(node.test, told))
            ex.fail(node.test, "E326", str(told or "this assertion does not hold"))

    def refusal(self, test: ast.expr, told: Any) -> tuple[str, str | None]:
        """What is wrong with the attributes that an assertion is on, and a hint. `told`: its message, if it has one."""
        given = self.scope.attributes_in(test)
        head = " and ".join([f"{name} is {value!r}" for name, value in given.items()])
        if told is not None:
            return f"{head}: {told}", None
        match test:
            case ast.Compare(left=ast.Name(), ops=[ast.In()], comparators=[ast.Tuple() | ast.List() as listed]):
                allowed = self.expressions.eval(listed)
                *front, last = [repr(each) for each in allowed]
                words = f"{', '.join(front)} or {last}" if front else last
                return f"{head}, and has to be {words}", did_you_mean(
                    str(next(iter(given.values()))), [each for each in allowed if isinstance(each, str)]) or None
        return f"{head}, and has to satisfy {ast.unparse(test)}", None

    def accumulate_at(self, node: ast.Call, method: ast.Attribute) -> None:
        """`np.add.at(name, index, value)`: a change of an array in place."""
        ex = self.expressions
        owner = ex.eval(method.value)
        fn = AT.get(owner.name.removeprefix("np.")) if isinstance(owner, Function) else None
        if fn is None:
            ex.fail(node, "E221", f"{described(owner)} has no '.at'", f"these have: np.{', np.'.join(AT)}")
        if len(node.args) != 3 or node.keywords or not isinstance(node.args[0], ast.Name):
            ex.fail(node, "E322", f"np.{ast.unparse(method.value).removeprefix('np.')}.at takes the name of an array, "
                    "an index and a value", "np.add.at(Z, index, value)")
        target, index, written = node.args
        assert isinstance(target, ast.Name)
        old, b = ex.eval(target), ex.at(node)
        if isinstance(old, Unset):
            unset(ex.at(target), old)
        if not isinstance(old, Array):
            ex.fail(target, "E311", f"'{target.id}' is {described(old)}: it has no elements")
        at, value = ex.eval(index), ex.as_operand(written, ex.eval(written))
        self.check_change(node, b, target.id, old)
        self.scope.values[target.id] = accumulate_at(b, fn, old, at, value)

    def jump(self, node: ast.stmt) -> None:
        if not self.loops:
            self.expressions.fail(node, "E243", f"this is no Python: '{type(node).__name__.lower()}' outside a loop")
        raise _Jump(isinstance(node, ast.Break))

    def returned(self, node: ast.Return) -> None:
        self.end = self.source.position(node)
        value = None if node.value is None else self.expressions.eval(node.value)
        raise Returned(value)


def is_list_of_positions(at: Any) -> bool:
    """Is it an index such as [0, 2]?"""
    return isinstance(at, list) and bool(at) and all(isinstance(n, int) and not isinstance(n, bool) for n in at)


def parts_for(b: Builder, value: Any, count: int) -> list[Any]:
    """What each position of a list gets: an array along its first axis, or the same for all."""
    if isinstance(value, Array) and value.rank and constant_of(value.shape[0]) == count:
        return [select(b, value, n) for n in range(count)]
    if isinstance(value, tuple | list) and len(value) == count:
        return list(value)
    return [value] * count


def changes_elements(statements: Sequence[ast.stmt]) -> bool:
    """Do statements assign elements of arrays?"""
    return any(isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) for s in statements for n in ast.walk(s))


def may_change_arrays(statements: Sequence[ast.stmt]) -> bool:
    """Do statements assign elements of arrays, or change what may be an array in place, `x += 1`?"""
    return changes_elements(statements) or any(
        isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) for s in statements for n in ast.walk(s))


HANDLERS: dict[type[ast.stmt], Callable[[Any, Any], None]] = {
    ast.Assign: PythonStatements.assign, ast.AugAssign: PythonStatements.augmented,
    ast.AnnAssign: PythonStatements.annotated, ast.If: PythonStatements.choice, ast.For: PythonStatements.loop,
    ast.FunctionDef: PythonStatements.define, ast.Expr: PythonStatements.expression,
    ast.Return: PythonStatements.returned, ast.Break: PythonStatements.jump, ast.Continue: PythonStatements.jump,
    ast.Assert: PythonStatements.asserted, ast.Pass: lambda s, n: None}
