"""Bodies in Python with loops over elements: `for i in range(M): …`, beside and around statements over whole arrays.
Loops, branches and jumps; what is known when the body is compiled needs no loop.
"""
from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...core.expr import Cast, Const, Expr, Var, index
from ...core.node import Node
from ..typing import WEAK_INT, Term, Value
from .argument_binding import described
from .array_scope import ArrayScope
from .builder import Builder
from .elementwise_functions import term_of
from .handles import ONE, ZERO, Array, Operand, Unset, is_whole
from .jumps import is_unclear, returned_names, returns, without_jumps, without_returns
from .loop_expressions import Variable
from .python_builtins import BUILTINS, AllIndices, UnknownRange
from .python_iteration import ITERATORS, call_of, iterated
from .python_memory import PythonMemory, assignments_in, bindings_in, changed_arrays
from .python_source import PythonSource
from .python_statements import (
    HANDLERS,
    MOST_UNROLLED,
    Returned,
    changes_elements,
)
from .returned_values import ReturnedValues
from .selection import select


class PythonLoops(PythonMemory):
    """Evaluates the statements of one body."""

    def __init__(self, builder: Builder, source: PythonSource, scope: ArrayScope, params: Sequence[Node],
                 kinds: dict[tuple[int, str], str], negative: set[tuple[int, str]]) -> None:
        super().__init__(builder, source, scope, params, kinds, negative)
        self.handlers = {
            **HANDLERS, ast.Assign: PythonLoops.assign, ast.AugAssign: PythonLoops.augmented,
            ast.If: PythonLoops.choice, ast.For: PythonLoops.loop, ast.Return: PythonLoops.returned,
            ast.Break: PythonLoops.jump, ast.Continue: PythonLoops.jump}

    def choice(self, node: ast.If) -> None:
        test = self.expressions.known(node.test)
        if isinstance(test, bool):
            self.block(node.body if test else node.orelse)
        else:
            yes, no, _ = self.branches(node, test, node.body, node.orelse, self.block)
            self.scope.values = {name: self.merged(node, name, yes[name], no[name]) for name in yes if name in no}
            self.ended |= dict.fromkeys(yes.keys() ^ no.keys(), "one branch of an 'if'")

    def branches(self, node: ast.If, test: Operand, yes_body: Sequence[ast.stmt], no_body: Sequence[ast.stmt],
                 run: Callable[[Sequence[ast.stmt]], None]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """An `if` about which the call decides: what names stand for after each branch, and before. `run`: evaluates a
        branch."""
        b = self.expressions.at(node.test)
        cond = self.made.expression(b.typing.condition(b.term(test, ()), b.typing.words.where))
        before, siblings, after = self.scope.values, self.siblings, list[dict[str, Any]]()

        def arm(statements: Sequence[ast.stmt]) -> None:
            self.scope.values = dict(before)
            self.siblings = {name: value for known in after for name, value in known.items()
                             if isinstance(value, Variable) and name not in before}
            run(statements)
            after.append(self.scope.values)
        self.made.choice(cond, [partial(arm, yes_body), partial(arm, no_body)])
        (yes, no), self.siblings = after, siblings
        return yes, no, before

    def merged(self, node: ast.If, name: str, yes: Any, no: Any) -> Any:
        """What a name stands for after an `if`."""
        if yes is no or yes == no:
            return yes
        if isinstance(yes, Unset | Array) and isinstance(no, Unset | Array) and yes.name == no.name:
            return no if isinstance(yes, Unset) else yes
        if name.startswith("returned_"):
            self.expressions.fail(node, "E240", "a loop that elements decide to leave returns numbers only",
                                  "fill an array that is made before the loop, and return it after")
        self.expressions.fail(node, "E326", f"what '{name}' is depends on a condition that is not known when the body "
                              "is compiled", "both branches can store into the same array or variable")

    def block(self, statements: Sequence[ast.stmt]) -> None:
        """What follows a `return` that a condition of the call decides about is in the branches without it."""
        for n, statement in enumerate(statements):
            if isinstance(statement, ast.If) and returns(statement):
                self.returning(statement, statements[n + 1:])
                return
            if isinstance(statement, ast.For) and returns(statement) and self.over_elements_of(statement) is not None:
                if is_unclear(statement):
                    self.expressions.fail(statement, "E240", "a loop that is left with 'break' has no 'return' in its "
                                          "'else'", "set a variable, and return it after the loop")
                name = f"returned_{self.source.position(statement)}"
                arrays = [each for each, value in self.scope.values.items() if isinstance(value, Array | Unset)]
                written = without_returns(statement, name, arrays)
                self.assignments.update({each: 2 for each in assignments_in(written) if each.startswith(name)})
                self.block([*written, *statements[n + 1:]])
                return
            super().block([statement])

    def returning(self, node: ast.If, rest: Sequence[ast.stmt]) -> None:
        """An `if` with a `return` in it, and what follows."""
        test = self.expressions.known(node.test)
        if isinstance(test, bool):
            self.block([*(node.body if test else node.orelse), *rest])
            return
        kept = ReturnedValues(self, node)
        names = returned_names([node, *rest])
        in_outputs = bool(names) and all(name is not None and self.is_output(name) for name in names)

        def run(statements: Sequence[ast.stmt]) -> None:
            frame, self.frame = self.frame, len(self.made.blocks)
            try:
                self.block(statements)
                kept.keep(None)
            except Returned as end:
                kept.keep(None if in_outputs else end.value)
            finally:
                self.frame = frame
        _, _, self.scope.values = self.branches(node, test, [*node.body, *rest], [*node.orelse, *rest], run)
        if not in_outputs:
            raise Returned(kept.value())
        for name in names:
            param = self.scope.buffers[str(name)]
            self.scope.values[str(name)] = Array(param.name, param.type, self.scope.params[param.name].shape)
        raise Returned(tuple([self.scope.values[str(name)] for name in names]))

    def loop(self, node: ast.For) -> None:
        over = self.over_elements_of(node)
        if over is None:
            self.unroll(node)
        else:
            over(node)

    def over_elements_of(self, node: ast.For) -> Callable[[ast.For], None] | None:
        """How a loop goes over elements; None for one over what is known, which is unrolled."""
        ex = self.expressions
        b = ex.at(node)
        if call := call_of(node.iter, ("range",), ex):
            given = [ex.eval(a) for a in call.args]
            if 1 <= len(given) <= 3 and not call.keywords:
                for x in given:
                    if not _is_number(x):
                        ex.fail(node.iter, "E322", f"range takes one to three integers, not {described(x)}")
                known = BUILTINS["range"].make(b, given, {})
                if isinstance(known, range) and len(known) <= MOST_UNROLLED and not self.depth and not changes_elements(
                        node.body):
                    return None
                return partial(self.over_range, given=given)
        elif call_of(node.iter, ITERATORS, ex) and (found := iterated(self, node.iter, node.target)):
            return partial(self.iterate, nest=[(found.name, (ZERO, found.extent, ONE))], item=found.item)
        items = ex.eval(node.iter)
        if isinstance(items, Array):
            if not items.rank:
                ex.fail(node, "E311", "a number has no items")
            return partial(self.iterate, nest=[("item", (ZERO, items.shape[0], ONE))],
                           item=lambda at: select(b, items, at))
        if isinstance(items, AllIndices):
            names = _index_names(node.target, len(items.shape))
            nest = [(name, (ZERO, extent, ONE)) for name, extent in zip(names, items.shape, strict=True)]
            return partial(self.iterate, nest=nest, item=lambda *at: at)
        if isinstance(items, range) and len(items) > MOST_UNROLLED:
            return partial(self.over_range, given=(items.start, items.stop, items.step))
        if isinstance(items, UnknownRange):
            ex.fail(node.iter, "E326", "the bounds of this range are not known when the body is compiled",
                    "write it in the loop: for i in range(…)")
        return None

    def unroll(self, node: ast.For) -> None:
        """A loop over what is known: its body once for each item."""
        outer, self.unrolled = self.unrolled, len(self.made.blocks)
        try:
            super().loop(node)
        finally:
            self.unrolled = outer

    def over_range(self, node: ast.For, given: Sequence[Any]) -> None:
        """`for i in range(…)`"""
        ex = self.expressions
        bounds = [self.number(node.iter, x, what) for x, what in zip(
            given, ("the start", "the end", "the step") if len(given) > 1 else ("the end",), strict=False)]
        lo, hi, step = (ZERO, bounds[0], ONE) if len(bounds) == 1 else (*bounds, ONE)[:3]
        if step is ZERO:
            ex.fail(node, "E231", "the step of this loop is 0", "a negative step counts down")
        if not isinstance(node.target, ast.Name):
            ex.fail(node.target, "E229", "the items of a range are numbers: they have one name")
        b = ex.builder
        rises = isinstance(step, Const) and step.value > 0 and b.is_never_negative(lo)

        def item(var: Term) -> Term:
            if rises:
                b.sizes.never_negative.add(b.typing.default(var))
            return var
        self.iterate(node, [(node.target.id, (lo, hi, step))], item)

    def number(self, node: ast.expr, value: Any, what: str) -> Expr:
        """A bound of a loop."""
        if isinstance(value, int):
            return index(value)
        b = self.expressions.at(node)
        operand = term_of(value, b.pos)
        assert operand is not None
        if isinstance(operand, Array) and is_whole(operand.dtype) and not operand.rank:
            e = operand.at(())
            return e if e.dtype == "i64" else Cast("i64", e)
        return b.typing.index(b.term(operand, ()), f"{what} of the loop")

    def iterate(self, node: ast.For, nest: Sequence[tuple[str, tuple[Expr, Expr, Expr]]],
                item: Callable[..., Any]) -> None:
        """Loops over elements, one in the other: a wanted name and the start, end and step of each. `item`: what the
        target stands for, from the variables of the loops."""
        ex = self.expressions
        going = f"going_{ex.source.position(node)}"
        node, leaves = without_jumps(node, going)
        if leaves:
            self.assignments[going] = 2                            # it changes
            self.scope.values[going] = True
        self.carry(node)
        for name in changed_arrays(node.body):                    # an iteration may read what the one before has set
            if isinstance(value := self.scope.values.get(name), Unset):
                self.scope.values[name] = Array(value.name, value.dtype, value.shape)
        before, loops = dict(self.scope.values), self.loops
        homes = dict(self.homes)

        def inside(*variables: Var) -> None:
            if len(variables) < len(nest):
                wanted, bounds = nest[len(variables)]
                self.made.loop(wanted, bounds, ex.source.position(node), partial(inside, *variables))
                return
            pos = ex.source.position(node.target)
            self.bind_item(node, item(*[Value(WEAK_INT, pos, expr=var) for var in variables]))
            self.block(node.body)
        self.depth, self.loops = self.depth + 1, 0
        self.bodies.append(node.body)
        try:
            inside()
        finally:
            self.depth, self.loops = self.depth - 1, loops
            self.bodies.pop()
        for name in self.scope.values.keys() - before.keys():
            self.ended[name] = "a loop, which may have no iteration"
        self.homes = {k: v for k, v in self.homes.items() if k in homes}
        after = self.scope.values
        self.scope.values = {k: after[k] if isinstance(v, Unset) else v for k, v in before.items()}
        self.block(node.orelse)

    def bind_item(self, node: ast.For, value: Any) -> None:
        """Give the target of a loop its item, which stands for itself."""
        name = node.target.id if isinstance(node.target, ast.Name) else ""
        if name and (name in assignments_in(node.body) or name in self.scope.values):
            self.store(node.target, value, node.iter)               # the body assigns it, or it had a value before
        else:
            self.expressions.bind(node.target, value)

    def carry(self, node: ast.For) -> None:
        """Before a loop: what its body assigns and was set before is memory, so that an iteration sees what the one
        before has assigned."""
        b = self.expressions.at(node)
        bound = bindings_in([node.target, *node.body])
        for name in assignments_in([node.target, *node.body]):
            value = self.scope.values.get(name)
            if self.is_output(name) or (isinstance(value, Array) and value.rank and name not in bound):
                continue
            operand = None if isinstance(value, tuple | list | str | Variable | Unset) else term_of(value, b.pos)
            if isinstance(operand, Array) and operand.rank:
                if name not in self.homes:
                    self.check_shared(b, name, operand, (), node.body)
                    self.scope.values[name] = self.in_memory(b, name, operand)
                    self.homes[name] = self.depth
            elif operand is not None:
                variable = self.declare(b, name, b.term(operand, ()), b.pos)
                self.change(b, name, variable, operand)

    def jump(self, node: ast.stmt) -> None:
        if (self.depth and not self.loops) or (self.loops and len(self.made.blocks) > self.unrolled):
            self.expressions.fail(node, "E240", f"elements decide about this '{type(node).__name__.lower()}', and the "
                                  "loop over a list is unrolled", "put the rest of its body under an 'if'")
        super().jump(node)

    def returned(self, node: ast.Return) -> None:
        if len(self.made.blocks) > self.frame:
            self.expressions.fail(node, "E240", "elements decide about this 'return', and the loop over a list is "
                                  "unrolled", "set a variable, and return it after the loop")
        super().returned(node)


def _index_names(target: ast.expr, count: int) -> list[str]:
    """The names of the loops over the parts of an index: those of the target, if it has one for each."""
    if isinstance(target, ast.Tuple) and len(target.elts) == count:
        return [each.id if isinstance(each, ast.Name) else "index" for each in target.elts]
    return [f"{target.id}_{n}" if isinstance(target, ast.Name) else "index" for n in range(count)]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Term) or (isinstance(value, Array) and not value.rank)
