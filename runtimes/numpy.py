"""The interpreter as a runtime: no compiler, no hardware, the reference meaning of a loop program at a thousandth of
its speed.

Its artifact is a JSON file that holds the programs as text; loading reads them back, and a call runs them over the
caller's own memory.
"""
from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from caten.calls import array_arguments
from caten.calls.call_arguments import OUT_OF_MEMORY
from caten.core.dtypes import DTYPES, is_packed, is_short, short_value
from caten.core.program import Machine, resolve
from caten.core.scalars import OPERATORS
from caten.core.text import read, show
from caten.errors import error
from caten.loop.statements import MARKS, LoopProgram
from caten.runtime import copied_calls
from caten.runtime.call import callables
from caten.runtime.copied_calls import Call
from caten.runtime.protocol import Choice, CompileRecord, Option, Runtime

VERSION = "1"


class Numpy(Runtime):
    """No C: programs are kept as text and interpreted."""

    api_version, name = 1, "numpy"
    description = "the reference interpreter, over numpy arrays; needs no compiler"
    suffixes: ClassVar[Mapping[str, str]] = {"so": ".json"}
    config: ClassVar[Mapping[str, Option]] = {"ORDER": Choice("forward", "the order of a parallel loop's iterations",
                                                              of=("forward", "reverse"))}
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
        out.write_text(json.dumps({"version": VERSION, "programs": source, "order": self.settings["ORDER"]},
                                  indent=1) + "\n", encoding="utf-8")
        return CompileRecord("interpreter", VERSION, (), ())

    def load(self, artifact: Path, manifest: Mapping[str, Any]) -> Any:
        try:
            content = json.loads(artifact.read_text(encoding="utf-8"))
            text, order = content["programs"], content["order"]
        except (OSError, ValueError, KeyError, TypeError):
            raise error("E669", f"{artifact} is not what the numpy runtime writes",
                        hint="compile the spec again") from None
        programs = {p.name: resolve(p) for p in read(text, str(artifact))}
        return callables(copied_calls.library(artifact, manifest, lambda number,
                                              op: lambda call: interpreted(programs[op["op"]], call, order)))


def interpreted(program: LoopProgram, call: Call, order: str) -> int:
    """Run the program over the caller's own memory; elements of 4 bits over a copy."""
    from caten.semantics.interpret import run
    types = {a["name"]: a["dtype"] for a in call.op["arguments"]}
    values = {n: complex(*v) if isinstance(v, tuple) else short_value(v, types[n]) if is_short(types[n]) else v for n,
              v in call.numbers.items()}
    packed = [a for a in call.op["arguments"] if a["kind"] == "tensor" and is_packed(a["dtype"])]
    unpacked = {a["name"]: array_arguments.unpacked(call.arrays[a["name"]], call.shape(a), a, program.name)
                for a in packed}
    try:
        code = run(program, values | {b.name: truths(call.arrays[b.name], b.access)
                                      for b in program.buffers.values()} | unpacked, order)
    except MemoryError:
        return OUT_OF_MEMORY
    for a in packed:
        if a["direction"] != "in":
            call.arrays[a["name"]][...] = array_arguments.packed(unpacked[a["name"]], a)
    return code


def truths(array: Any, access: str) -> Any:
    """Bools in memory may be any byte, and all but 0 are true; numpy takes 0 and 1 alone. An array that is written,
    too, is changed in place."""
    if array.dtype != bool or access == "out":
        return array
    true = np.asarray(array.view("u1") != 0)               # of an array without axes, too
    if access == "in":
        return true
    array[...] = true
    return array
