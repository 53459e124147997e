"""Where in the spec a statement of a kernel comes from, also after a schedule changed its loops and indices."""
from __future__ import annotations

from collections.abc import Iterable

from ..core.expr import Expr
from ..core.program import At
from ..core.text import flat, form_of
from ..loop.statements import Aref, For, Stmt, Vref


class Places:
    """The places of the spec's own loops and accesses, in the order of the spec."""

    def __init__(self, facts: Iterable[At]):
        self._known = sorted(facts, key=lambda at: (at.line, at.column))
        self._exact = {at.what: at for at in self._known}

    def of(self, stmt: Stmt, before: At | None) -> At | None:
        """The place of a statement; `before` is the place of the one before it, and the answer where nothing else is known."""
        return (self._of_loop(stmt) if isinstance(stmt, For) else self._of_access(stmt, before)) or before

    def _of_loop(self, loop: For) -> At | None:
        """A part of a split loop carries the name of the whole and a letter: `io` is a part of `i`."""
        names = [at.what for at in self._known if loop.name.startswith(at.what)]
        return self._exact[max(names, key=len)] if names else None

    def _of_access(self, stmt: Stmt, before: At | None) -> At | None:
        """An access by its text, else the next one in the spec to the same array; a local scalar, which every use spells alike, by where it is first
        used if that comes next."""
        refs = [n for c in stmt.children if isinstance(c, Expr) for n in c.unique() if isinstance(n, Aref | Vref)]
        for ref in refs:
            if ref.index and (found := self._exact.get(flat(form_of(ref)))) is not None:
                return found
        for ref in refs:
            same = [at for at in self._known if at.what.startswith(f"(aref {ref.buffer} ") or (not ref.index and at.what == f"(aref {ref.buffer})")]
            later = [at for at in same if before is None or (at.line, at.column) >= (before.line, before.column)]
            if later or (same and ref.index):
                return (later or same)[0]
        return None
