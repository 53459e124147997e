"""Kernel launches on a device: the grid, the block and the arguments of each kernel."""
from __future__ import annotations

from ..core.expr import Const, Expr, Var
from ..core.program import Buffer
from ..errors import error
from ..frozen import frozen
from ..loop.affine import canonical
from ..loop.gpu_verifier import block_of, grid_of
from ..loop.statements import Aref, Fail, Kernel, Local, LoopProgram, Vref
from .c_identifiers import symbol
from .entry_points import arguments
from .linear_offsets import product
from .scratch_memory import is_in_scratch

SCRATCH, STATUS = "ct_scratch", "ct_status"       # kernel parameters besides the operator's own
NO_FAILURE = (1 << 31) - 1  # the initial status word; a failing thread lowers it to its check's number


@frozen
class Launch:
    """One launch: the kernel function, the extents of its grid and block loops, outermost first, and its argument
    names."""

    function: str
    grid: tuple[Expr, ...]
    block: tuple[int, ...]
    arguments: tuple[str, ...]

    @property
    def groups(self) -> Expr:
        """How many groups there are."""
        return canonical(product(self.grid))


def launches(program: LoopProgram) -> tuple[Launch, ...]:
    """The launches in order. The kernel's number in a function's name makes it unique in a library."""
    return tuple([launch(program, kernel, n) for n, kernel in enumerate(program.kernels, 1)])


def launch(program: LoopProgram, kernel: Kernel, number: int) -> Launch:
    """One kernel of a program."""
    grid, block = grid_of(kernel), block_of(kernel)
    threads = tuple([loop.hi.value for loop in block if isinstance(loop.hi, Const)])
    if grid or block:
        for node in kernel.unique():
            if isinstance(node, Local) and is_in_scratch(node):
                raise error("E612", f"the local array '{node.name}' in {node.space} lies inside of groups of threads",
                            hint="give it a constant shape in register, stack or shared, or leave the loops around it "
                                 "serial")
    name = f"{symbol(program.name)}_{number}_{symbol(kernel.name)[3:]}"
    return Launch(name, tuple([canonical(loop.hi - loop.lo) for loop in grid]), threads, _arguments(program, kernel))


def _arguments(program: LoopProgram, kernel: Kernel) -> tuple[str, ...]:
    """The parameters of the operator that the kernel needs, then the block of scratch memory and the status word where
    it does."""
    arrays: dict[str, Buffer | Local] = {b.name: b for b in program.buffers.values()}
    arrays |= {c.name: c for c in program.all(Local)} | {n.name: n for n in kernel.unique() if isinstance(n, Local)}
    needed: set[str] = set()
    scratch = False
    grid = grid_of(kernel)
    # the host counts groups
    roots = [*(grid[-1].body if grid else kernel.body), *[loop.lo for loop in grid], *[loop.hi for loop in grid[1:]]]
    for node in {n: None for root in roots for n in root.unique()}:
        if isinstance(node, Var):
            needed.add(node.name)
        elif isinstance(node, Aref | Vref):
            array = arrays[node.buffer]
            needed |= {node.buffer} | _measures(array)
            scratch |= isinstance(array, Local) and is_in_scratch(array)
        elif isinstance(node, Local) and is_in_scratch(node):
            scratch = True
    # The offsets of scratch arrays are formulas over sizes and scalars.
    found = [p.name for p in arguments(program) if p.name in needed or (scratch and not isinstance(p, Buffer))]
    return (*found, *([SCRATCH] if scratch else []),
            *([STATUS] if any(isinstance(n, Fail) for n in kernel.unique()) else []))


def _measures(array: Buffer | Local) -> set[str]:
    """The names in an element's address computation: strides, or the extents of all axes but the slowest."""
    order, strides = (array.axes_in_memory,
                      array.strides) if isinstance(array, Buffer) else (tuple(range(len(array.shape))), ())
    shape = array.axes if isinstance(array, Buffer) else array.shape
    extents = strides or tuple([shape[axis] for axis in order[1:]])
    return {name for e in extents for name in e.variables}
