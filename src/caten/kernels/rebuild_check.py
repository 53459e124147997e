"""Is the kernel that a key found the one that was asked for? `--verify` makes it anew and looks."""
from __future__ import annotations

from collections.abc import Sequence

from .. import driver
from ..core.program import Program, resolve
from ..core.text import read
from ..errors import error
from ..frontend.op import OpProgram
from ..frontend.structure import NO_PART, structure, with_names
from ..options import Options
from .known_kernels import Kept


def compare(known: Kept, programs: Sequence[Program], options: Options) -> None:
    """Render programs under the names of the kernel found by their key. E491 if the text differs."""
    before = [resolve(p) for text in known.texts for p in read(text)]
    dressed = [_dressed(old, new) for old, new in zip(before, programs, strict=True)]
    text = driver.render([driver.advance(p, "loop", options) for p in dressed], options)
    if text != known.source:
        names = ", ".join([p.name for p in programs])
        raise error("E491", f"the key of {names} belongs to another kernel, {', '.join([p.name for p in before])}")


def _dressed(old: Program, new: Program) -> Program:
    """The new program under the names and with the words of the old one."""
    if not isinstance(old, OpProgram) or not isinstance(new, OpProgram):
        return new                                          # the names of values are in the key
    renamed = with_names(new, structure(old).names)
    clauses = (*[c for c in old.clauses if isinstance(c, NO_PART)],
               *[c for c in renamed.clauses if not isinstance(c, NO_PART)])
    return old.replace(clauses=clauses)
