"""A library under other names than it was made with: what is called, and what it says of itself."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from .. import compiler, loading
from ..core.program import Doc, Program, Signature
from ..core.size_formula import renamed
from ..core.text import show
from ..frontend.spec_files import SpecText
from ..options import Options
from ..runtime.library import Library
from ..runtime.manifest import Manifest, operators

SYMBOLS = ("symbol", "symbols")


def under_names(manifest: Manifest, programs: Sequence[Program], before: Sequence[Sequence[str]],
                after: Sequence[Sequence[str]]) -> Manifest:
    """The manifest of a library with the names of other programs: what a call needs. The rest, which `Own` has, is left
    as it was. `before` and `after`: of each operator its own name, then the others in one order."""
    ops = [_operator(op, p, dict(zip(old[1:], new[1:], strict=True)))
           for op, p, old, new in zip(operators(manifest), programs, before, after, strict=True)]
    return ops[0] if "ops" not in manifest else manifest | {"ops": [{k: v for k, v in op.items() if k not in manifest}
                                                                    for op in ops]}


def _operator(op: Manifest, program: Program, names: Mapping[str, str]) -> Manifest:
    doc, declared = program.first(Doc), program.first(Signature)
    return op | {
        "op": program.name,
        "documentation": doc.text if doc else "",
        "signature": list(declared.tensors) if declared else [],
        "arguments": [_argument(a, names) for a in op["arguments"]],
        "outputs": [names[n] for n in op["outputs"]],
        **({"any_axes": {names[n]: [names[n]] for n in op["any_axes"]}} if "any_axes" in op else {}),
        "binds": {names[n]: value for n, value in op["binds"].items()},
        "conditions": [renamed(c, names) for c in op["conditions"]],
        "scratch_bytes": renamed(op["scratch_bytes"], names),
    }


def _argument(argument: Mapping[str, Any], names: Mapping[str, str]) -> Manifest:
    strides = argument["strides"]
    return dict(argument) | {"name": names[argument["name"]], "shape": [renamed(e, names) for e in argument["shape"]],
                             "strides": [renamed(e, names) for e in strides] if strides else strides}


def under_manifest(library: Library, manifest: Manifest) -> Library:
    """A loaded library with another manifest, whose operators are the same in the same order."""
    before = [op["op"] for op in operators(library.manifest)]
    after = [op["op"] for op in operators(manifest)]
    return replace(library, manifest=manifest,
                   entries={new: library.entries[old] for old, new in zip(before, after, strict=True)})


class Own:
    """What programs are rendered to under their own names, with the symbols that their library really has. It is
    rendered when it is asked for: it takes as long as a build without the C compiler."""

    def __init__(self, programs: Sequence[Program], options: Options, spec_sha256: str, called: Manifest):
        self._programs, self._options, self._spec_sha256, self._called = programs, options, spec_sha256, called

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (tuple([show(p) for p in self._programs]), self._options, self._spec_sha256, self._called)

    @cached_property
    def _rendered(self) -> compiler.Rendered:
        return compiler.Compilation(self._programs, self._options, self._spec_sha256).rendered

    @property
    def source(self) -> str:
        return self._rendered.source

    @cached_property
    def manifest(self) -> Manifest:
        found = self._rendered.manifest
        if "ops" not in found:
            return found | {key: self._called[key] for key in SYMBOLS}
        return found | {"ops": [op | {key: called[key] for key in SYMBOLS} for op,
                                called in zip(found["ops"], self._called["ops"], strict=True)]}


def _again(texts: Sequence[str], options: Options, spec_sha256: str, called: Manifest) -> Own:
    """As it was pickled."""
    programs = [p for text in texts for p in loading.read_programs(SpecText("<pickled>", text, "lisp"))]
    return Own(programs, options, spec_sha256, called)
