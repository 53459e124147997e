"""The replay of a memory plan: does each kernel find what it reads in the array where the plan has put it?

It runs the kernels in their order over a table of what each array holds, whatever the plan was made by. Only whether a
kernel may write to an array that it reads is decided by the rule of the plan, `is_in_place`.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from .kernels import Group, NestKernel, names_of, reads_of_kernel
from .memory import Plan, is_in_place, sources_of
from .values import TensorProgram


def faults(program: TensorProgram, kernels: Sequence[Group | NestKernel], plan: Plan) -> Iterator[str]:
    """What goes wrong when the kernels run with this plan: an array that is overwritten before a kernel reads it, two
    results in one array, or an output that is not there at the end."""
    held = {name: name for name in program.buffers}             # array -> the parameter, as passed, or the value in it
    made = {name for k in kernels for name in names_of(k)}
    for n, kernel in enumerate(kernels):
        for _, source, copy in [c for c in plan.copies if c[0] == n]:
            held[copy] = held.get(source, "")
        place = {name: plan.old.get((n, name), plan.home.get(name, name)) for name in reads_of_kernel(kernel)}
        for name, array in place.items():
            # what is neither is an array that nothing sets, in a branch that is never taken
            if held.get(array) != name and (name in made or name in program.buffers):
                yield f"kernel {n} reads {name} in {array}, which holds {held.get(array, 'nothing')}"
        results = kernel.names if isinstance(kernel, NestKernel) else sorted(kernel.stored)
        written: dict[str, str] = {}
        for result in results:
            array = plan.home.get(result, result)
            if array in written:
                yield f"kernel {n} writes {written[array]} and {result} to {array}"
            written[array] = result
            for name in [r for r in place if place[r] == array]:
                if (name, result) not in sources_of(kernel) and not is_in_place(kernel, result, name):
                    yield f"kernel {n} writes {result} to {array} and reads {name} there, at other elements"
        held |= written
    for value, array in plan.late:
        held[array] = held.get(plan.home.get(value, value), "")
    for output in program.outputs:
        if held.get(output.name) != output.value:
            yield f"{output.name} holds {held.get(output.name, 'nothing')} at the end, and not {output.value}"
