"""What nests begin from, where a program becomes a part of another one."""
from __future__ import annotations

from .values import Define, Nest, TensorProgram


def without_callers_outputs(program: TensorProgram) -> TensorProgram:
    """The program whose nests do not begin from what the caller has in an array that is only an output: nothing of it
    is read, for every element is set."""
    outputs = {b.name for b in program.buffers.values() if b.access == "out"}

    def alone(d: Define) -> Define:
        if not isinstance(d.value, Nest) or not any(out.source in outputs for out in d.value.outs):
            return d
        outs = tuple([out.replace(source="") if out.source in outputs else out for out in d.value.outs])
        return d.replace(value=d.value.replace(outs=outs))
    return program.replace(clauses=tuple([alone(c) if isinstance(c, Define) else c for c in program.clauses]))
