"""Find the source location of a statement in the spec, even after a schedule has changed its loops and indices."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property

from ..core.expr import Expr, Var
from ..core.program import At, Source
from ..core.text import Form, flat, form_of, read_forms
from ..errors import CatenError, Place
from ..frozen import frozen
from ..loop.statements import Aref, For, Local, Prefetch, Stmt, Vref

Axes = tuple[frozenset[str], ...]          # for each axis of an access, the loops of the spec in its index


@frozen
class Access:
    """An access that the spec wrote."""

    at: At
    buffer: str
    axes: Axes


class SourceLocations:
    """The source locations of the spec's loops and accesses. Schedule steps derive names: `io` and `it` are parts of
    the loop `i`; `top_part` and `top_2` stand for the array `top`. If several locations fit a statement, it gets the
    first one that no statement with the same access has got since the surrounding loop began: copies keep the order of
    the spec."""

    def __init__(self, facts: Iterable[At], source: Source | None = None):
        self._file = source.file if source is not None else ""
        self._facts = facts
        self._parts: dict[str, str] = {}                              # loop of the kernel -> that of the spec
        self._had: set[tuple[int, str]] = set()                       # line, access of the kernel

    # Read when first asked for: of most kernels nobody asks.

    @cached_property
    def _known(self) -> list[At]:
        return sorted(self._facts, key=lambda at: (at.line, at.column))

    @cached_property
    def _loops(self) -> dict[str, At]:
        return {at.what: at for at in reversed(self._known) if not at.what.startswith("(")}

    @cached_property
    def _accesses(self) -> list[Access]:
        return [self._read(at) for at in self._known if at.what.startswith("(aref ")]

    @cached_property
    def _buffers(self) -> set[str]:
        return {access.buffer for access in self._accesses}

    def of(self, stmt: Stmt, before: At | None) -> At | None:
        """The source location of a statement; by default `before`, that of the preceding statement."""
        match stmt:
            case For(name=name):
                return self._of_loop(name) or before
            case Local(name=name):
                return self._of_scalar(name, before) or before
        return self._of_access(stmt, before) or before

    @contextmanager
    def around(self, stmt: Stmt) -> Iterator[None]:
        """What is refused in a statement has its place."""
        try:
            yield
        except CatenError as problem:
            at = self.of(stmt, None) if self._file else None
            if at is None:
                raise
            raise CatenError(*[d.at(Place(self._file, at.line, at.column)) for d in problem.diagnostics]) from None

    def _read(self, at: At) -> Access:
        (_, buffer, *index), = read_forms(at.what)
        return Access(at, str(buffer), tuple([frozenset(_words(i)) & self._loops.keys() for i in index]))

    def _of_loop(self, name: str) -> At | None:
        whole = _longest(name, self._loops)
        if not whole:
            return None
        self._parts[name] = whole
        inside = {access.at.line for access in self._accesses if any(whole in axis for axis in access.axes)}
        self._had = {(line, text) for line, text in self._had if line not in inside}
        return self._loops[whole]

    def _of_scalar(self, name: str, before: At | None) -> At | None:
        """A scalar is spelled alike wherever it is used, so only the first place is known: the answer if that comes
        next."""
        whole = _longest(name, self._buffers)
        places = [access.at for access in self._accesses if access.buffer == whole and not access.axes]
        return next((at for at in places if before is None or (at.line, at.column) >= (before.line, before.column)),
                    None)

    def _of_access(self, stmt: Stmt, before: At | None) -> At | None:
        refs = [n for c in stmt.children if isinstance(c, Expr) for n in c.unique() if isinstance(n, Aref | Vref)]
        for ref in refs:
            if found := self._candidates(ref):
                return self._first(found, flat(form_of(ref)), before, isinstance(stmt, Prefetch))
        return next((at for ref in refs if (at := self._of_scalar(ref.buffer, before)) is not None), None)

    def _candidates(self, ref: Aref | Vref) -> list[At]:
        """Accesses of the spec to the same array: those of the same text, else of the same loops, an axis without any
        being one whose loop was written out, else all."""
        text, buffer = flat(form_of(ref)), _longest(ref.buffer, self._buffers)
        same = [access for access in self._accesses if access.buffer == buffer and access.axes]
        axes = [{self._parts[n.name] for n in i.unique() if isinstance(n, Var) and n.name in self._parts}
                for i in ref.index]
        alike = [a.at for a in same if len(a.axes) == len(axes)
                 and all(not mine or mine == its for mine, its in zip(axes, a.axes, strict=True))]
        return [a.at for a in same if a.at.what == text] or alike or [a.at for a in same]

    def _first(self, found: list[At], text: str, before: At | None, early: bool) -> At:
        """One of the candidates; a statement that runs ahead of another one leaves that one its place."""
        later = [at for at in found if before is None or (at.line, at.column) >= (before.line, before.column)]
        chosen = next((at for at in found if (at.line, text) not in self._had), (later or found)[0])
        if not early:
            self._had.add((chosen.line, text))
        return chosen


def _longest(name: str, known: Iterable[str]) -> str:
    """What a name was made from: the longest known one that it begins with, or nothing."""
    return max([k for k in known if name.startswith(k)], key=len, default="")


def _words(form: object) -> list[str]:
    return [word for part in form for word in _words(part)] if isinstance(form, Form) else [str(form)]
