"""Operators under other names, by way of their text: nothing here asks the compiler which fields hold names."""
from __future__ import annotations

import re
from collections.abc import Mapping

from caten.core.dtypes import DTYPES
from caten.core.node import HEADS
from caten.core.program import resolve
from caten.core.scalars import BY_SPELLING
from caten.core.text import read, show
from caten.frontend.op import OpProgram

WORDS = {*HEADS, *BY_SPELLING}
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s()"]+')


def declared(program: OpProgram) -> list[str]:
    """Every name that an operator declares."""
    return list(dict.fromkeys([n.declares()[0] for n in program.unique() if hasattr(n, "declares")]))


def other_names(program: OpProgram) -> dict[str, str]:
    """New names for all, in the opposite order of the alphabet; a loop called `i8` keeps its name, which is a type in other places of a text."""
    names = sorted(declared(program))
    return {name: name if name in DTYPES else f"v{len(names) - n:03}" for n, name in enumerate(names)}


def in_text(text: str, names: Mapping[str, str]) -> str:
    """A text with other names; strings stay, and the words that a list begins with."""
    return _TOKEN.sub(lambda found: found[0] if text[found.start() - 1] == "(" and found[0] in WORDS else names.get(found[0], found[0]), text)


def renamed(program: OpProgram, name: str = "Other") -> OpProgram:
    """The operator with none of its names; its strings, which no code comes of, speak of the old ones."""
    made = resolve(read(in_text(show(program), other_names(program)))[0]).replace(name=name)
    assert isinstance(made, OpProgram)
    return made
