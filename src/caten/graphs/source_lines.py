"""Which lines of generated C compute which values.

The lowered statements get places of their own: each is a line of an imaginary file. The renderer refers to these places
by `#line`, whatever the schedule has made of the loops. Such a text is another than that of the library: it has more
braces, and kernels of other lengths, which are other parts of the file. So its lines only tell the values of those of
the library.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from ..core.program import At, Buffer, Lines, Source
from ..core.text import flat, form_of
from ..frozen import frozen
from ..loop.statements import Aref, For, If, Incf, Local, LoopProgram, Setf, Stmt
from ..tensor import repeated_kernels
from ..tensor.before_fusion import ready_for_fusion
from ..tensor.blocks_of_rows import BLOCKS
from ..tensor.kernels import Group, NestKernel, names_of
from ..tensor.lower import Lowering
from ..tensor.values import Reduce, TensorProgram

_LINE = re.compile(r'#line (\d+) "([^"]*)"\s*\Z')
_CLOSES = re.compile(r"\s*(\}.*|\{?)\Z")


@frozen
class Line:
    """A line of C and the values that it is for."""

    text: str
    values: tuple[str, ...] = ()


def lines_of(programs: Sequence[TensorProgram], scheduled: Sequence[LoopProgram],
             render: Callable[[Sequence[LoopProgram]], str]) -> list[Line]:
    """The lines of the C of programs. Values are `0.v1`: the number of the program, and the name."""
    known: dict[str, list[tuple[str, ...]]] = {}
    placed: list[LoopProgram] = []
    for n, (values, loops) in enumerate(zip(programs, scheduled, strict=True)):
        file = f"values {n}"
        known[file] = []
        facts: list[At] = []
        for stmt, names in _statements(ready_for_fusion(values)):
            known[file].append(tuple([f"{n}.{name}" for name in names]))
            facts += [At(len(known[file]), 1, what) for what in _spellings(stmt)]
        placed.append(loops.without(At, Source, Lines).adding(Source(file), Lines(), *facts))
    owners = _values_of(render(placed).splitlines(), known)
    lines = render([p.without(Lines) for p in scheduled]).splitlines()
    own = dict(zip([n for n, text in enumerate(lines) if _is_code(text)], owners, strict=True))
    return [Line(text, () if _CLOSES.match(text) else own.get(n, ())) for n, text in enumerate(lines)]


def _values_of(lines: Sequence[str], known: Mapping[str, Sequence[tuple[str, ...]]]) -> Iterator[tuple[str, ...]]:
    """The values of each line of code between directives that refer to `known`."""
    now: tuple[str, ...] = ()
    for text in lines:
        directive = _LINE.match(text)
        if directive is not None:
            number, file = int(directive[1]), directive[2]
            now = known[file][number - 1] if file in known else ()
        elif _is_code(text):
            yield now


def _is_code(line: str) -> bool:
    """Is a line neither braces alone nor about the parts of the file?"""
    return line.strip("{} ") != "" and not line.startswith(("#", "/*"))


def _statements(program: TensorProgram) -> Iterator[tuple[Stmt, tuple[str, ...]]]:
    """The lowered statements in order, each with the values that it is for. Kernels that are equal but for the parts of
    arrays that they take may be one: their statements are for the values of all."""
    lowering = Lowering(program, BLOCKS)
    parts = lowering.parts()
    arrays: dict[str, Buffer | Local] = {**program.buffers, **{c.name: c for c in lowering.locals}}
    kernels = repeated_kernels.equal_kernels(parts, arrays)
    equal: dict[int, list[list[tuple[Stmt, tuple[str, ...]]]]] = {}
    for n, (k, part) in enumerate(zip(lowering.lowered.values(), parts, strict=False)):
        owners = _Owners(k, lowering)
        values = [own for _, own in owners.walk(part, owners.members)]
        stmts = [s for s, _ in owners.walk(kernels.moved(n, part), owners.members)]
        equal.setdefault(kernels.first.get(n, n), []).append(list(zip(stmts, values, strict=True)))
    for group in equal.values():
        for same in zip(*group, strict=True):
            names = tuple(dict.fromkeys([name for _, found in same for name in found]))
            yield from [(stmt, names) for stmt, _ in same]


class _Owners:
    """The values that the statements of a kernel are for. Passes over rows say it. Elsewhere an accumulation is for the
    sum, a store for the last member, and a loop for all, the checks that a scatter makes in it included."""

    def __init__(self, k: Group | NestKernel, lowering: Lowering) -> None:
        checks = [check.value for name in names_of(k) for check in lowering.in_scatters.get(name, [])]
        self.members = (*dict.fromkeys(checks), *names_of(k))
        self.made_for, self.is_nest = lowering.made_for, isinstance(k, NestKernel)
        sums = () if isinstance(k, NestKernel) else tuple([m.name for m in k.members if isinstance(m.value, Reduce)])
        self.sums = sums or names_of(k)

    def walk(self, stmts: Sequence[Stmt], around: tuple[str, ...]) -> Iterator[tuple[Stmt, tuple[str, ...]]]:
        """Each statement, those inside others included. `around`: the values of the one around it."""
        for s in stmts:
            known = self.of(s, around)
            yield s, known
            if isinstance(s, For):
                yield from self.walk(s.body, known)
            elif isinstance(s, If):
                yield from self.walk((*s.then, *s.otherwise), known)

    def of(self, s: Stmt, around: tuple[str, ...]) -> tuple[str, ...]:
        said = self.made_for.get(s.name if isinstance(s, For) else s)
        if said is not None or around != self.members or self.is_nest:
            return said or around
        return self.sums if isinstance(s, Incf) else self.members[-1:] if isinstance(s, Setf) else around


def _spellings(stmt: Stmt) -> Iterator[str]:
    """What the renderer may find a statement by: the name of a loop, or its accesses."""
    if isinstance(stmt, For):
        yield stmt.name
    elif not isinstance(stmt, If):
        yield from [flat(form_of(n)) for n in stmt.unique() if isinstance(n, Aref)]
