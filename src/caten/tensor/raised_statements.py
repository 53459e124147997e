"""The statements of a body as definitions of values, as far as they have index notation; what has none is a nest."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.node import Node
from ..core.program import Ensure, Target
from ..frontend.op import OpProgram
from ..loop.context import Context
from ..loop.effects import writes
from ..loop.renaming import renamed_arrays
from ..loop.statements import ExternCall, Fail, If, Incf, Let, Local, Setf, Stmt
from .checks_as_values import define_checks
from .symbolic_execution import Array, DoesNotFit, Execution, State
from .values import Named, Nest, Out, Output, ValueTable, reads_of


class Statements:
    """The definitions of a body, in order."""

    def __init__(self, op: OpProgram, heard: Callable[[Stmt, str, Node | None], None] | None) -> None:
        self.op, self.table, self.heard = op, ValueTable(op), heard
        state = State({b.name: Array(b.type, b.axes, (), b.name) for b in op.buffers.values()})
        target = op.first(Target)
        on_device = target is not None and bool(target.machine.groups)       # its threads make their own checks
        self.execution = Execution(self.table, Context.of(op), state, checks=not on_device)

    def run(self, body: tuple[Stmt, ...], as_written: bool) -> None:
        """Execute the body. A statement that does not fit is a nest; where scalars are live, with all from their
        declaration on; after a run-time check, with the rest of the body."""
        if as_written and body:
            self.nest(body)
            return
        execution, live, checked = self.execution, None, None
        for n, s in enumerate(body):
            before = execution.state.copy()
            if live is None and isinstance(s, Local | Let) and not (isinstance(s, Local) and s.shape):
                live = n, before
            try:
                execution.run((s,))
                if checked is None and isinstance(s, If) and _fails(s):
                    checked = n, before                    # a nest after it may rest on this check
            except DoesNotFit as reason:
                execution.leave_loops()
                if self.heard is not None:
                    self.heard(s, reason.why, reason.at)
                earlier = [found for found in (live, checked) if found is not None]
                start, execution.state = min(earlier, key=lambda found: found[0], default=(n, before))
                if earlier or _fails(s):
                    self.nest(body[start:])
                    return
                self.nest((s,))

    def nest(self, stmts: tuple[Stmt, ...]) -> None:
        """Keep statements as a nest over what the arrays hold now."""
        arrays = self.execution.state.arrays
        names = _written(stmts)
        outs = tuple([Out(n, arrays[n].type, arrays[n].shape, arrays[n].value) for n in names])
        values = {n: a.value for n, a in arrays.items() if a.value and a.value != n and n not in names}
        results = self.table.define(Nest(renamed_arrays(stmts, values), outs))
        for name, result in zip(names, results, strict=True):
            arrays[name] = Array(arrays[name].type, arrays[name].shape, (), result)
            self.execution.call(result, name, ())

    def clauses(self) -> tuple[Node, ...]:
        """The names of the spec, conditions on sizes, definitions, checks and outputs."""
        state, checks = self.execution.state, []
        for check, loops in define_checks(self.op, state.guards, self.table):
            self.execution.call(reads_of(check.cond)[0].buffer, "outside", loops)
            checks.append(check)
        sizes = [Ensure(row, cond) for row, cond in state.sizes]
        arrays = self.execution.state.arrays
        outputs = [Output(b.name, arrays[b.name].value) for b in self.op.buffers.values()
                   if arrays[b.name].value != b.name]
        named = [Named(value, name, axes) for value, (name, axes) in self.execution.spec_names.items()]
        return (*sizes, *named, *self.table.definitions, *checks, *outputs)


def _fails(s: Stmt) -> bool:
    return any(isinstance(part, Fail) for part in s.walk())


def _written(stmts: Sequence[Stmt]) -> tuple[str, ...]:
    """The arrays that statements write and do not declare, in order of first appearance."""
    nodes = [n for s in stmts for n in s.walk()]
    locals_ = {n.name for n in nodes if isinstance(n, Local)}
    stores = [n for n in nodes if isinstance(n, Setf | Incf | ExternCall)]
    return tuple(dict.fromkeys(name for n in stores for name in writes(n) - locals_))
