"""A cost model of schedules, from the table of machines alone. It rules out candidates before they are compiled, and
orders the others."""
from __future__ import annotations

from collections.abc import Iterable
from math import prod

from ..core.dtypes import DTYPES
from ..core.expr import Const, Expr, Op
from ..core.program import Machine
from ..loop.affine import canonical
from ..loop.statements import For, If, Incf, Local, LoopProgram, Setf, Stmt, Vref

OPERANDS = 2                   # registers for the operands of an operation
# limit of scratch memory, as a multiple of the last cache in the table; there may be a larger cache behind it
CACHES = 4
UNITS = 2                      # operations, and memory accesses, that start in one cycle
LATENCY = 4                    # cycles of an addition
UNKNOWN = 64                   # assumed iterations of a loop of unknown length


def fits(program: LoopProgram, machine: Machine) -> bool:
    """Do the tiles fit the registers, and the packed panels the caches?"""
    registers = max([_registers(kernel.body, machine) for kernel in program.kernels], default=0)
    scratch = sum([_elements(n) * DTYPES[n.type].bytes for k in program.kernels for n in k.walk()
                   if isinstance(n, Local) and n.space == "scratch"])
    return registers + OPERANDS <= machine.registers and scratch <= CACHES * machine.cache_bytes[-1]


def cycles(program: LoopProgram, machine: Machine) -> float:
    """Cycles per vector operation: the mean over the innermost loops, weighted by their operations."""
    found = [_innermost(loop, machine) for kernel in program.kernels for loop in _leaves(kernel.body)]
    operations = sum([ops for ops, _ in found])
    return sum([spent for _, spent in found]) / operations if operations else 0.0


def _registers(body: Iterable[Stmt], machine: Machine) -> int:
    """The largest number of vector registers that local arrays occupy at once."""
    own, inner = 0, 0
    for stmt in body:
        if isinstance(stmt, Local) and stmt.space == "register":
            own += -(-_elements(stmt) * DTYPES[stmt.type].bytes // machine.vector_bytes)
        elif isinstance(stmt, For):
            inner = max(inner, _registers(stmt.body, machine))
        elif isinstance(stmt, If):
            inner = max(inner, _registers(stmt.then, machine), _registers(stmt.otherwise, machine))
    return own + inner


def _elements(array: Local) -> int:
    return prod([_value(extent) for extent in array.shape])


def _value(extent: Expr) -> int:
    known = canonical(extent)
    return known.value if isinstance(known, Const) else UNKNOWN


def _leaves(body: Iterable[Stmt]) -> Iterable[For]:
    """The innermost loops; unrolled loops count as straight-line code."""
    for stmt in body:
        if isinstance(stmt, If):
            yield from _leaves((*stmt.then, *stmt.otherwise))
        elif isinstance(stmt, For):
            inner = list(_leaves([s for s in stmt.body if not (isinstance(s, For) and s.mark == "unroll")]))
            yield from inner or ([stmt] if stmt.mark != "unroll" else [])


def _innermost(loop: For, machine: Machine) -> tuple[float, float]:
    """Vector operations of one iteration, and its cycles: the maximum of arithmetic throughput, load/store throughput
    and the latency of the accumulators."""
    operations, accesses, sums = _counts(loop.body)
    chains = sum([-(-_elements(n) * DTYPES[n.type].bytes // machine.vector_bytes) for n in loop.walk()
                  if isinstance(n, Local)]) or sums
    return operations, max(operations / UNITS, accesses / UNITS, LATENCY * sums / max(1, chains))


def _counts(body: Iterable[Stmt]) -> tuple[float, float, float]:
    """The numbers of vector operations, vector memory accesses, and accumulations."""
    operations = accesses = sums = 0.0
    for stmt in body:
        if isinstance(stmt, For):
            found = _counts(stmt.body)
            times = _value(stmt.hi - stmt.lo)
            operations, accesses = operations + times * found[0], accesses + times * found[1]
            sums += times * found[2]
        elif isinstance(stmt, Setf | Incf):
            adds = float(isinstance(stmt, Incf))
            operations += adds + len([n for n in stmt.value.walk() if isinstance(n, Op)])
            accesses += len([n for n in stmt.walk() if isinstance(n, Vref)])
            sums += adds
    return operations, accesses, sums
