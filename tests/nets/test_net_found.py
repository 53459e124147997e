"""Programs on which the random nets once found a fault, as they were shrunk: they stay right."""
from __future__ import annotations

from pathlib import Path

import pytest
from random_specs import RandomSpec, Tensor
from test_net_random_specs import case_of, scheduled

from caten.loop import interpret
from caten.loop.statements import LoopProgram

LANES = RandomSpec(
    "ReadsALocalInAnIndex", (), (Tensor("C", "i32", ("N",), (0,)), Tensor("D", "i64", ("N",), (0,))),
    (("dotimes", ("i", "N"), ("set", "x", ("+", "i", "2")), ("setf", ("aref", "C", "i"), ("cast", "int32", ("cast", "uint32", "x")))),
     ("dotimes", ("j", "N"), ("set", "y", "1"), ("let", (("z", ("+", "j", "y")),), ("set", "y", "5"), ("setf", ("aref", "D", "j"), "z")))),
    (("N", 19),), 0)


@pytest.mark.parametrize("spec", [LANES], ids=lambda s: s.name)
def test_what_was_found_stays_right(spec: RandomSpec, tmp_path: Path) -> None:
    case = case_of(spec, tmp_path)
    program = scheduled(case, 2, tmp_path)
    assert isinstance(program, LoopProgram)
    run = {k: v.copy() if hasattr(v, "copy") else v for k, v in case.job.arguments.items()}
    assert interpret.run(program, run) == case.status
    for name, bits in case.bits.items():
        assert (run[name] == bits).all()
