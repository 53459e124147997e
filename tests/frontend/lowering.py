"""Shared by the tests of bodies: declarations and a body as text -> IR text, or the diagnostics of a refusal."""
from __future__ import annotations

from caten.core.text import place_in, show
from caten.errors import CatenError, Place
from caten.frontend.body import Lowered, lower_body
from caten.frontend.composite import Callees, Composite
from caten.frontend.signature import Written, declare

NONE = Callees()


def composite(code: str, inputs: str = "X{float}[N]", outputs: str = "Y{float}[N]", name: str = "Main", where: str = "") -> Composite:
    """Inputs and outputs are separated by semicolons."""
    def written(text: str) -> list[Written]:
        return [Written(t.strip(), lambda pos: Place("sig", 1, pos + 1)) for t in text.split(";") if t.strip()]
    s = declare(written(inputs), written(outputs), written(where))
    return Composite(name, s.tensors, s.inputs, s.outputs, s.sizes, s.conditions, code, "lisp", lambda pos: place_in(code, pos, name),
                     Place(name, 1, 1), name)


def library(*members: Composite) -> Callees:
    return Callees(members)


def lowered(code: str, inputs: str = "X{float}[N]", outputs: str = "Y{float}[N]", lookup: Callees = NONE) -> Lowered:
    return lower_body(composite(code, inputs, outputs), lookup)


def ir(code: str, inputs: str = "X{float}[N]", outputs: str = "Y{float}[N]", lookup: Callees = NONE) -> str:
    """The statements on one line each, however they are nested."""
    return "\n".join(" ".join(show(s, 10_000).split()) for s in lowered(code, inputs, outputs, lookup).stmts)


def value(expr: str, inputs: str = "X{float}[N]; s{float}[]; k{int32}[]; h{int}[]; J{int32}[N]; B{bool}[N]; Z{complex64}[N]",
          out: str = "float") -> str:
    """The IR of an expression that is stored into an element of an output of type `out`, with i a loop variable."""
    text = ir(f"(dotimes (i N) (setf (aref Y i) {expr}))", inputs, f"Y{{{out}}}[N]")
    start = "(for i 0 N 1 serial (setf (aref Y i) "
    assert text.startswith(start), text
    return text[len(start):-2]


def refusals(code: str, inputs: str = "X{float}[N]", outputs: str = "Y{float}[N]", lookup: Callees = NONE) -> list[str]:
    """`code line:column message | hint` of each diagnostic."""
    try:
        found = lowered(code, inputs, outputs, lookup)
    except CatenError as problem:
        return [f"{d.code} {d.place.line}:{d.place.column} {d.message}" + (f" | {d.hint}" if d.hint else "") for d in problem.diagnostics if d.place]
    raise AssertionError("no refusal:\n" + "\n".join(show(s) for s in found.stmts))
