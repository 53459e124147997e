"""A runtime that is wrong on purpose, in the way that `--config FAULT=` names: what the conformance suite must find."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from caten.errors import error
from caten.loop.statements import LoopProgram
from caten.runtime.discover import base
from caten.runtime.protocol import Choice
from caten.runtime.toolchain import Compiler

sys.path.insert(0, str(Path(__file__).parent))
from faults import FAULTS, Fault, applied  # beside this file, which may be loaded from anywhere

Clang: Any = base("clang")
OWN = ("none", "type refused", "options not refused")
TYPE = "u64"


class WrongRuntime(Clang):
    """Clang with a fault."""

    name = "wrong_runtime"
    description = "clang, with a fault"
    config = Clang.config | {"FAULT": Choice("none", "the fault", of=(*OWN, *FAULTS))}

    @property
    def fault(self) -> Fault:
        return FAULTS.get(self.settings["FAULT"], Fault(()))

    def configure(self, config: Any = (), host: Any = None) -> Any:
        known = [(k, v) for k, v in config if k.upper() in self.config]
        return super().configure(known if self.settings["FAULT"] == "options not refused" else config, host)

    def check_types(self, program: LoopProgram) -> None:
        if self.settings["FAULT"] == "type refused" and any(b.type == TYPE for b in program.buffers.values()):
            raise error("E611", f"{program.name}: this runtime does not support {TYPE}")
        super().check_types(program)

    def render(self, *programs: LoopProgram) -> str:
        fault = self.fault if self.settings["OMP"] or not self.fault.threads else Fault(())
        rule, change = fault.program, fault.text
        text: str = super().render(*[applied(rule, p) if rule else p for p in programs])
        return change(text) if change else text

    def flags(self, compiler: Compiler) -> list[str]:
        return [*super().flags(compiler), *self.fault.flags]
