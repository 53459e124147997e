"""Every pass keeps the meaning: the interpreter gives the same before and after, on every sample and on small sizes."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caten import loading, passes
from caten.core.program import Case, Program, resolve
from caten.core.text import read, show
from caten.frontend.op import OpProgram
from caten.frontend.spec_files import SpecText
from caten.loop.statements import LoopProgram
from caten.options import Options
from caten.schedule.planning import Planning
from caten.semantics import comparison, interpret, oracle
from caten.tensor.lower import lower
from caten.tensor.values import TensorProgram
from caten.testing import data, sizes_and_scalars

SAMPLES = sorted((Path(__file__).resolve().parent.parent / "samples").glob("*.toml"))
OPTIONS = Options(config=(("MARCH", "x86_64_v3"),), verify=True)


def results(program: Program, arguments: dict[str, Any]) -> dict[str, np.ndarray]:
    run = {k: v.copy(order="K") if isinstance(v, np.ndarray) else v for k, v in arguments.items()}
    runnable = lower(program) if isinstance(program, TensorProgram) else program
    assert isinstance(runnable, (OpProgram, LoopProgram))
    assert interpret.run(runnable, run) == 0
    return {b.name: run[b.name] for b in program.buffers.values() if b.access != "in"}


@pytest.mark.slice(12)
@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_every_pass_on_every_sample(path: Path) -> None:
    for op in loading.load_programs(SpecText(path.name, path.read_text(), "toml"), OPTIONS):
        assert isinstance(op, OpProgram)
        stages: list[Program] = [op]
        for step in passes.PASSES:
            stages.append(step.run(stages[-1], Planning()))
            assert resolve(read(show(stages[-1]))[0]) is stages[-1], f"the text after {step.name} does not read back"
            passes.VERIFIERS[passes.level_of(stages[-1])](stages[-1])
        cases = sorted(op.all(Case), key=lambda c: sum(int(float(s.value)) for s in c.sizes))
        filled, empty = [[c for c in cases if (c.expect == "empty") is wanted] for wanted in (False, True)]
        assert filled, f"{path.name} has no test case with elements"
        for case in [*filled[:2], *empty[:1]]:
            arguments = data.arguments(op, sizes_and_scalars.case_values(op, case), seed=3)
            expected = exact(op, arguments)
            for step, program in zip(passes.PASSES, stages[1:], strict=True):
                if program is op:
                    continue
                for name, got in results(program, arguments).items():
                    want, bound, loose = expected[name]
                    verdict = comparison.check(got, want, bound, loose, op.buffers[name].type)
                    assert verdict.passed, f"{path.stem} {case.name}: {step.name} changed {name}: {verdict}"
                    assert verdict.compared > verdict.loose or case.expect == "empty", f"{path.stem} {case.name}: little of {name} is compared: {verdict}"


def exact(op: OpProgram, arguments: dict[str, Any]) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    program = oracle.bounded(op)
    run = comparison.widened(op, arguments)
    assert interpret.run(program, run) == 0
    names = [b.name for b in op.buffers.values() if b.access != "in"]
    return {n: (run[n], run.get(f"{n}__bound", np.zeros(())), run.get(f"{n}__loose", np.zeros((), np.uint8))) for n in names}
