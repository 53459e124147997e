"""How the kernels of a program are started on a device: how many groups of how many threads, and with which arguments."""
from __future__ import annotations

from ..core.expr import Const, Expr, Var
from ..core.program import Buffer, Param
from ..errors import error
from ..frozen import frozen
from ..loop.affine import canonical
from ..loop.groups import block_of, grid_of
from ..loop.statements import Aref, Fail, Kernel, Local, LoopProgram, Vref
from .entry import arguments
from .flatten import product
from .names import symbol
from .scratch import in_block

SCRATCH, STATUS = "ct_scratch", "ct_status"       # what a kernel may take besides the operator's own arguments
NO_FAILURE = (1 << 31) - 1                        # in the status word: a failing thread puts its check's number there if that is less


@frozen
class Launch:
    """One kernel: the name of its function, the extents of its grid loops and of its block loops, outermost first, the names of its arguments."""

    function: str
    grid: tuple[Expr, ...]
    block: tuple[int, ...]
    arguments: tuple[str, ...]

    @property
    def groups(self) -> Expr:
        """How many groups there are."""
        return canonical(product(self.grid))


def launches(program: LoopProgram) -> tuple[Launch, ...]:
    """The kernels in the order in which they run. The name of a function has the kernel's number in it: no other one of a library is called so."""
    return tuple([launch(program, kernel, n) for n, kernel in enumerate(program.kernels, 1)])


def launch(program: LoopProgram, kernel: Kernel, number: int) -> Launch:
    """One kernel of a program."""
    grid, block = grid_of(kernel), block_of(kernel)
    threads = tuple([loop.hi.value for loop in block if isinstance(loop.hi, Const)])
    if grid or block:
        for node in kernel.unique():
            if isinstance(node, Local) and in_block(node):
                raise error("E612", f"the local array '{node.name}' in {node.space} lies inside of groups of threads",
                            hint="give it a constant shape in register, stack or shared, or leave the loops around it serial")
    name = f"{symbol(program.name)}_{number}_{symbol(kernel.name)[3:]}"
    return Launch(name, tuple([canonical(loop.hi - loop.lo) for loop in grid]), threads, _arguments(program, kernel))


def _arguments(program: LoopProgram, kernel: Kernel) -> tuple[str, ...]:
    """The parameters of the operator that the kernel needs, then the block of scratch memory and the status word where it does."""
    arrays: dict[str, Buffer | Local] = {b.name: b for b in program.buffers.values()}
    arrays |= {c.name: c for c in program.all(Local)} | {n.name: n for n in kernel.unique() if isinstance(n, Local)}
    needed: set[str] = set()
    scratch = False
    grid = grid_of(kernel)
    roots = [*(grid[-1].body if grid else kernel.body), *[loop.lo for loop in grid], *[loop.hi for loop in grid[1:]]]      # the host counts groups
    for node in {n: None for root in roots for n in root.unique()}:
        if isinstance(node, Var):
            needed.add(node.name)
        elif isinstance(node, Aref | Vref):
            array = arrays[node.buffer]
            needed |= {node.buffer} | _measures(array)
            scratch |= isinstance(array, Local) and in_block(array)
        elif isinstance(node, Local) and in_block(node):
            scratch = True
    named: list[Param] = list(arguments(program))
    found = [name for p in named if (name := p.declares()[0]) in needed]       # type: ignore[attr-defined]   # parameters declare
    if scratch:                                                                 # its parts begin where sizes decide
        found = [p.declares()[0] for p in named if p.declares()[0] in needed or not isinstance(p, Buffer)]   # type: ignore[attr-defined]
    return (*found, *([SCRATCH] if scratch else []), *([STATUS] if any(isinstance(n, Fail) for n in kernel.unique()) else []))


def _measures(array: Buffer | Local) -> set[str]:
    """The names that the place of an element is computed from: strides, or the extents of all axes but the slowest."""
    order, strides = (array.axes_in_memory, array.strides) if isinstance(array, Buffer) else (tuple(range(len(array.shape))), ())
    shape = array.axes if isinstance(array, Buffer) else array.shape
    extents = strides or tuple([shape[axis] for axis in order[1:]])
    return {name for e in extents for name in e.variables}
