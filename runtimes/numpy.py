"""The interpreter as a runtime: no compiler, no hardware, the reference meaning of a loop program at a thousandth of its speed.

Its artifact is a JSON file that holds the programs as text; loading reads them back, and a call runs them over the caller's own memory.
"""
from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from caten.core.dtypes import DTYPES
from caten.core.program import Check, Machine, resolve
from caten.core.scalars import OPERATORS
from caten.core.text import read, show
from caten.errors import error
from caten.loop.statements import MARKS, LoopProgram
from caten.runtime.call import callables
from caten.runtime.library import Entry, Library
from caten.runtime.manifest import operators
from caten.runtime.memory import over
from caten.runtime.protocol import Choice, CompileRecord, Option, Runtime

VERSION = "1"


class Numpy(Runtime):
    """No C: programs are kept as text and interpreted."""

    api_version, name = 1, "numpy"
    description = "the reference interpreter, over numpy arrays; needs no compiler"
    suffixes: ClassVar[Mapping[str, str]] = {"so": ".json"}
    config: ClassVar[Mapping[str, Option]] = {"ORDER": Choice("forward", "the order of a parallel loop's iterations", of=("forward", "reverse"))}
    types: ClassVar[Mapping[str, str]] = {name: d.numpy for name, d in DTYPES.items()}
    ops: ClassVar[Mapping[str, str]] = {name: row.numpy or name for name, row in OPERATORS.items()}
    marks: ClassVar[Mapping[str, str]] = dict.fromkeys(MARKS, "range")

    def machine(self) -> Machine:
        return Machine("interpreter", 32, 16, (32 << 10, 512 << 10), False)

    def available(self) -> None:
        """Always: numpy comes with caten."""

    def render(self, *programs: LoopProgram) -> str:
        return "\n".join([show(p) for p in programs]) + "\n"

    def compile(self, source: str, out: Path, kind: str) -> CompileRecord:
        out.write_text(json.dumps({"version": VERSION, "programs": source, "order": self.settings["ORDER"]}, indent=1) + "\n", encoding="utf-8")
        return CompileRecord("interpreter", VERSION, (), ())

    def load(self, artifact: Path, manifest: Mapping[str, Any]) -> Any:
        try:
            content = json.loads(artifact.read_text(encoding="utf-8"))
            text, order = content["programs"], content["order"]
        except (OSError, ValueError, KeyError, TypeError):
            raise error("E669", f"{artifact} is not what the numpy runtime writes", hint="compile the spec again") from None
        import cffi
        ffi = cffi.FFI()
        programs = {p.name: resolve(p) for p in read(text, str(artifact))}
        entries = {op["op"]: Entry(entry(programs[op["op"]], op, ffi, order), check_text(programs[op["op"]])) for op in operators(manifest)}
        return callables(Library(artifact, dict(manifest), ffi, entries))


def check_text(program: LoopProgram) -> Callable[[int], str]:
    """Failure number -> its text."""
    texts = {c.row: c.text for c in program.all(Check)}
    return lambda row: texts.get(row, "")


def entry(program: LoopProgram, op: Mapping[str, Any], ffi: Any, order: str) -> Callable[..., int]:
    """The program as a function of what its C counterpart takes: pointers, scalars, sizes, strides."""
    declared = op["arguments"]

    def call(*given: Any) -> int:
        from caten.loop.interpret import run
        numbers = {a["name"]: v for a, v in zip(declared, given, strict=True) if a["kind"] != "tensor"}
        values = {n: complex(*v) if isinstance(v, tuple) else v for n, v in numbers.items()}
        for argument, pointer in zip(declared, given, strict=True):
            if argument["kind"] == "tensor":
                values[argument["name"]] = over(ffi, pointer, argument, numbers)
        return run(program, values, order)
    return call
