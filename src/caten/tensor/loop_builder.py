"""What all kernels are lowered with: arrays and names for values, expressions over them, loops and stores.

Names of loops and scalars are those of the spec, with a number where they occur again.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..core.expr import Expr, Op, Var, index
from ..core.monoids import is_monoid
from ..core.program import Target
from ..core.unique_names import Names
from ..frozen import frozen
from ..loop.effects import reads
from ..loop.statements import ONE, ZERO, Aref, For, If, Incf, Let, Local, Setf, Stmt
from . import memory_replay
from .kernels import Group, NestKernel
from .memory import Plan, plan_memory
from .values import Axis, Indexed, Inside, Named, Nest, Out, Pieces, Read, Reduce, TensorProgram


@frozen
class Storage:
    """Where a member of a kernel lives that is not stored: in a `register`, in the `output` that is stored later in the
    same place, in a `row` (the elements of one iteration of the outer loops), or in `scratch` memory for the whole
    value. `name`: the scalar or array."""

    kind: str
    name: str


class LoopBuilder:
    """Makes the statements of kernels. `number`: the present kernel. `storage`: where members are. `made_for`: the
    members that a statement computes, or of a loop, by its name, those inside; of passes over rows. `on_device`: for a
    machine with groups of threads? `names`: those that are taken, if statements around these exist."""

    def __init__(self, program: TensorProgram, kernels: Sequence[Group | NestKernel], names: Names | None = None,
                 ) -> None:
        self.program, self.kernels = program, kernels
        target = program.first(Target)
        self.on_device = target is not None and bool(target.machine.groups)
        self.plan: Plan = plan_memory(program, kernels, reuses=names is not None)
        assert not (wrong := list(memory_replay.faults(program, kernels, self.plan))), wrong
        taken = {c.declares()[0] for c in program.params if hasattr(c, "declares")}
        taken |= {n.name for d in program.definitions if isinstance(d.value, Nest)
                  for n in d.value.walk() if isinstance(n, (For, Let, Local, Out))}
        self.names = names or Names(taken)
        self.spec_names = {n.value: n for n in program.all(Named)}
        self.arrays = {name: self.names.fresh(self.wanted(name)) for name in self.plan.scratch}
        self.number = 0
        self.storage: dict[str, Storage] = {}
        self.made_for: dict[Stmt | str, tuple[str, ...]] = {}

    def array(self, name: str) -> str:
        """The array that holds a value, or the old contents of a parameter."""
        if (self.number, name) in self.plan.old:
            return self.arrays[self.plan.old[self.number, name]]
        home = self.plan.home.get(name, name)
        return self.arrays.get(home, home)

    def axis_names(self, value: str, of: Indexed) -> tuple[str, ...]:
        """The names of the loops over the axes of a value."""
        axes: tuple[Axis, ...] = (*of.axes, *(of.over if isinstance(of, Reduce) else ()))
        named = self.spec_names.get(value)
        if named is not None and len(named.axes) >= len(axes):
            return named.axes[:len(axes)]
        return tuple([a.name for a in axes])

    def wanted(self, value: str) -> str:
        """The name of a scalar or scratch array that holds a value."""
        named = self.spec_names.get(value)
        return value if named is None or named.name in self.program.buffers else named.name

    def loops(self, ranges: Sequence[tuple[str, Expr]], body: Callable[[tuple[Expr, ...]], tuple[Stmt, ...]],
              ) -> tuple[Stmt, ...]:
        """Serial loops, outermost first, around the statements that `body` makes of their variables."""
        names = [self.names.fresh(name) for name, _ in ranges]
        stmts = body(tuple([Var(name, "i64") for name in names]))
        for n in reversed(range(len(names))):
            stmts = (For(names[n], ZERO, ranges[n][1], ONE, "serial", stmts),)
        return stmts

    def expr(self, e: Expr, names: Mapping[str, Expr], reads: Mapping[Expr, Expr] | None = None) -> Expr:
        """An expression over values in terms of loop variables and arrays."""
        known = reads or {}
        memo: dict[Expr, Expr] = {}

        def go(n: Expr) -> Expr:
            if n not in memo:
                if n in known:
                    memo[n] = known[n]
                elif isinstance(n, Var):
                    memo[n] = names.get(n.name, n)
                elif isinstance(n, Inside):
                    memo[n] = Inside(go(n.index), go(n.extent), n.row)         # `nearest_indices` replaces it
                elif isinstance(n, Pieces):
                    memo[n] = go(n.choice)
                elif isinstance(n, Read):
                    memo[n] = Aref(self.array(n.buffer), tuple([go(i) for i in n.index]), n.type)
                else:
                    memo[n] = n.map(go)
            return memo[n]
        return go(e)

    def store(self, ref: Aref, value: Expr, accumulates: bool = False) -> Stmt:
        """`ref = value`, under a condition if the element stays as it is elsewhere. `accumulates`: as an accumulation
        if the value combines the element with something else."""
        match value:
            case Op("where", (cond, yes, no)) if no is ref and ref.buffer not in reads(cond):
                return If(cond, (self.store(ref, yes, accumulates),))
            case Op("where", (cond, yes, no)) if yes is ref and ref.buffer not in reads(cond):
                return If(Op("not", (cond,)), (self.store(ref, no, accumulates),))
            case Op(fn, (first, second)) if accumulates and first is ref and is_monoid(fn, ref.type):
                return Incf(ref, second, fn) if ref.buffer not in reads(second) else Setf(ref, value)
        return Setf(ref, value)


def count_of_blocks(extent: Expr, size: int) -> Expr:
    """How many blocks of `size` iterations a loop has, the last one perhaps shorter."""
    return Op("floordiv", (Op("add", (extent, index(size - 1))), index(size)))
