"""What a conformance run consists of: kernels, and the cases in which they are called."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from ..core.dtypes import SPELLINGS
from ..frontend.spec_files import SpecText
from ..frozen import frozen
from .verdicts import Judge, Oracle

Given = Callable[[np.random.Generator], dict[str, Any]]              # the arrays, scalars and sizes of a call by name
_SPELLED: dict[str, str] = {}                                        # element type -> how a spec spells it
for _word, _dtype in SPELLINGS.items():
    _SPELLED.setdefault(_dtype, _word)


@frozen
class Kernel:
    """One operator to be compiled. `text`: it and what it calls, in the one-line form; `types`: the element types in
    it; `operators`: the rows of the operator table that it is about; `config`: options of the runtime that it needs;
    `strided`: arrays that pass strides."""

    name: str
    text: str
    types: frozenset[str]
    operators: tuple[str, ...] = ()
    config: tuple[tuple[str, str], ...] = ()
    strided: tuple[str, ...] = ()

    @property
    def source(self) -> SpecText:
        return SpecText(self.name, self.text, "lisp")


@frozen
class Case:
    """One call of a kernel, or one case of a sample, or one refusal: what has a verdict of its own.

    `kind`, `row`, `column` say where it stands in the report. `strides`: the strides in elements of an array that
    passes them, from its shape; `shift`: by how many elements its arrays lie beside an aligned address. `sample`: the
    spec whose own test this is. `refused`: an option of the runtime that must be refused.
    """

    kind: str
    row: str
    column: str
    name: str
    kernel: Kernel | None = None
    given: Given = lambda rng: {}
    judge: Judge = field(default_factory=Oracle)
    strides: Callable[[tuple[int, ...]], tuple[int, ...]] | None = None
    shift: int = 0
    sample: Path | None = None
    refused: tuple[str, str] | None = None

    @property
    def id(self) -> str:
        return f"{self.kind}/{self.row}/{self.column}/{self.name}"


def composite(name: str, inputs: Mapping[str, str], outputs: Mapping[str, str], body: str) -> str:
    """An operator in the one-line form. Declarations: name -> `f32[N]`, an element type and what follows it."""
    def declared(tensors: Mapping[str, str]) -> str:
        return ", ".join([f"{n}{{{spelled(t[:t.index('[')])}}}{t[t.index('['):]}" if "[" in t else n
                          for n, t in tensors.items()])
    return f"(composite {name} (({declared(inputs)}) -> ({declared(outputs)})) {body})"


def spelled(dtype: str) -> str:
    """An element type as a spec spells it."""
    return _SPELLED[dtype]


def identifier(*parts: str) -> str:
    """The name of a kernel."""
    return "k_" + "_".join(["".join([c if c.isalnum() else "_" for c in p]) for p in parts])


def selects(pattern: str, case: Case) -> bool:
    """Does one pattern of --filter select the case: a glob over its id, or a part of its id (`add`, `f32`,
    `operator/add`)?"""
    if any(c in pattern for c in "*?["):
        return fnmatchcase(case.id, pattern)
    return pattern in (case.kind, case.row, case.column,
                       case.name) or f"{case.id}/".startswith(f"{pattern.rstrip('/')}/")


def selected(cases: Iterable[Case], patterns: Iterable[str]) -> list[Case]:
    """The cases that any pattern selects; all where there is none."""
    patterns = tuple(patterns)
    return [c for c in cases if not patterns or any(selects(p, c) for p in patterns)]
