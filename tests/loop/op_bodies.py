"""Operators for tests of passes over bodies: read from a spec, with their checks added, and as text."""
from __future__ import annotations

from caten import loading
from caten.core.program import Program
from caten.core.text import flat, form_of
from caten.frontend.op import Body, OpProgram
from caten.frontend.spec_files import SpecText
from caten.loop.bounds_checks import add_checks
from caten.options import Options


def checked_program(spec: str, in_order: bool = False) -> OpProgram:
    """The operator of a spec, its checks added."""
    (made,) = loading.load_programs(SpecText("t.toml", spec, "toml"), Options(config=(("MARCH", "x86_64_v3"),), in_order=in_order))
    checked = add_checks(made)
    assert isinstance(checked, OpProgram)
    return checked


def body_text(made: Program) -> str:
    """The text of the statements, names of loops and locals as they are."""
    clause = made.first(Body)
    assert clause is not None
    return " ".join([flat(form_of(s)) for s in clause.stmts])
