"""However a nest is written, it gets the same plan: the samples and other nests, in ways that mean the same."""
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from caten import driver, loading
from caten.core.expr import Op
from caten.core.node import Node
from caten.core.program import At, Schedule
from caten.errors import CatenError
from caten.frontend.op import Body, OpProgram
from caten.frontend.spec import read_file
from caten.frontend.structure import structure, with_names
from caten.loop.effects import reads
from caten.loop.statements import Aref, For, If, Incf, Local, Setf, Stmt
from caten.options import Options

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
OPTIONS = Options(config=(("MARCH", "x86_64_v3"),))
Writing = Callable[[OpProgram], OpProgram]


def plan(program: Any) -> tuple[Any, ...]:
    """The steps of the schedule, names numbered as they come."""
    made = driver.advance(program, "loop", OPTIONS)
    fact = made.first(Schedule)
    names: dict[str, int] = {}
    known = {n for n in made.unique() for n in [getattr(n, "name", "")] if n}

    def word(w: Any) -> Any:
        if isinstance(w, tuple):
            return tuple([word(part) for part in w])
        return w if w.lstrip("-").isdigit() or w in WORDS else names.setdefault(w, len(names))
    assert known
    return tuple([(step[0], *[word(w) for w in step[1:]]) for step in (fact.steps if fact else ())])


WORDS = frozenset(("min", "pad", "cut", "full", "register", "stack", "scratch", "accumulate", "partial", "tree",
                   "begin", "read", "write", "copy",
                   "<", "<=", "=", ">=", ">", "and", "or", "*", "+", "-", "floordiv", "max"))


def each(program: OpProgram, change: Callable[[Stmt], tuple[Stmt, ...]]) -> OpProgram:
    """The operator with statements in the place of each that is no loop and no condition."""
    def go(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for s in stmts:
            match s:
                case For():
                    out.append(s.replace(body=go(s.body)))
                case If():
                    out.append(s.replace(then=go(s.then), otherwise=go(s.otherwise)))
                case _:
                    out += change(s)
        return tuple(out)
    return program.replace(clauses=tuple([c.replace(stmts=go(c.stmts)) if isinstance(c, Body) else c
                                          for c in program.clauses]))


def written_out(stmt: Stmt) -> tuple[Stmt, ...]:
    """(setf x (+ x e))"""
    return (Setf(stmt.ref, Op(stmt.fn, (stmt.ref, stmt.value))),) if isinstance(stmt, Incf) else (stmt,)


def mirrored(stmt: Stmt) -> tuple[Stmt, ...]:
    """(setf x (+ e x))"""
    return (Setf(stmt.ref, Op(stmt.fn, (stmt.value, stmt.ref))),) if isinstance(stmt, Incf) else (stmt,)


class Named:
    """(set v (aref A i)): what is read goes to a local first, but for indices."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, stmt: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(stmt, Setf | Incf) or any(isinstance(n, Op) and n.fn == "where" for n in stmt.value.unique()):
            return (stmt,)
        lets: list[Stmt] = []
        names: dict[Node, Node] = {}
        # their checks move with them
        indices = {n for ref in stmt.value.unique() if isinstance(ref, Aref) for i in ref.index for n in i.unique()}
        for ref in dict.fromkeys([n for n in stmt.value.unique() if isinstance(n, Aref) and n.index
                                  and n not in indices and not any(map(reads, n.index))]):
            self.count += 1
            local = Aref(f"v{self.count}", (), ref.dtype)
            lets += [Local(local.buffer, ref.dtype, (), "register"), Setf(local, ref)]
            names[ref] = local

        def go(node: Node) -> Any:
            return names[node] if node in names else node.map(go)
        return (*lets, stmt.replace(value=go(stmt.value)))


def renamed(program: OpProgram) -> OpProgram:
    """Every name is another one, of other length and in another order."""
    names = structure(program).names
    return with_names(program,
                      [f"{chr(ord('a') + (7 * n) % 26)}{'yx'[n % 2] * (1 + n % 3)}{n}" for n in range(len(names))])


WRITINGS: dict[str, Writing] = {
    "written out": lambda p: each(p, written_out), "the other way round": lambda p: each(p, mirrored),
    "with names for what is read": lambda p: each(p, Named()), "renamed": renamed,
    "all of it": lambda p: renamed(each(each(p, mirrored), Named())),
}


def programs() -> list[tuple[str, OpProgram]]:
    found = []
    for path in sorted(SAMPLES.glob("*.toml")):
        for program in loading.load_programs(read_file(path), OPTIONS):
            if isinstance(program, OpProgram) and program.first(Schedule) is None:
                found.append((f"{path.stem}:{program.name}", program))
    return found


PROGRAMS = dict(programs())


@cache
def plan_as_written(name: str) -> tuple[Any, ...]:
    return plan(PROGRAMS[name].without(At))


def of_every_run(program: int, writing: int) -> bool:
    """All of it at once, and one of the others, which take turns."""
    return writing in (program % (len(WRITINGS) - 1), len(WRITINGS) - 1)


@pytest.mark.slice(10)
@pytest.mark.parametrize(("name", "writing"), [pytest.param(name, writing, marks=[] if of_every_run(n, k) else [pytest.mark.nightly])
                                               for n, name in enumerate(PROGRAMS) for k, writing in enumerate(WRITINGS)])
@pytest.mark.slow
def test_a_sample_is_planned_alike_however_it_is_written(name: str, writing: str) -> None:
    program = PROGRAMS[name].without(At)
    try:
        other = WRITINGS[writing](program)
        found = plan(other)
    except CatenError as problem:
        pytest.fail(f"{writing}: {problem}")
    assert found == plan_as_written(name)
