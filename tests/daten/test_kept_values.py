"""Operators of the library as values in the cache: a second process reads no spec, and plans nothing."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from daten import Tensor, operator
from daten.graph_keys import leaves_of, words_of

NETWORK = """
import sys
import numpy as np
from daten import Tensor, apply, realize
x = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4) / 10, requires_grad=True)
loss = apply("cross_entropy", x.relu() @ Tensor(np.eye(4, 5, dtype=np.float32)) + 1, Tensor(np.array([0, 1, 4])))
loss.backward()
part = x[1:, ::2].sum()
realize(loss, x.grad, part)
print(loss.numpy().tobytes().hex(), x.grad.numpy().tobytes().hex(), part.numpy().tobytes().hex())
print(*sorted(name for name in sys.modules if name.startswith("caten.")))
"""
BY_CACHE = ("caten.frontend.spec", "caten.schedule.autoscheduler", "caten.tensor.lower", "caten.tensor.canonical_values", "caten.loop.context", "caten.render.c_statements", "caten.gradients.adjoints")


def run(folder: Path, code: str = NETWORK) -> tuple[str, set[str]]:
    """What it prints of the results, and the modules of caten that it imported."""
    made = subprocess.run([sys.executable, "-c", code], env={**os.environ, "CATEN_CACHE_DIR": str(folder)}, capture_output=True, text=True, check=True).stdout
    results, modules = made.splitlines()
    return results, set(modules.split())


@pytest.mark.slow
def test_a_second_process_reads_no_spec_and_plans_nothing(tmp_path: Path) -> None:
    results, modules = run(tmp_path)
    assert {"caten.frontend.spec", "caten.schedule.autoscheduler", "caten.gradients.adjoints"} <= modules
    again, modules = run(tmp_path)
    assert again == results
    assert not modules & set(BY_CACHE)


@pytest.mark.slow
def test_damaged_values_are_made_again(tmp_path: Path) -> None:
    results, _ = run(tmp_path)
    kept = sorted(tmp_path.glob("values/*/object.pickle"))
    assert len(kept) > 8
    for file in kept:
        file.write_bytes(b"\x80garbage")
    again, modules = run(tmp_path)
    assert again == results
    assert "caten.frontend.spec" in modules
    assert run(tmp_path)[1].isdisjoint(BY_CACHE)


@pytest.mark.slow
def test_specs_of_users_are_read_each_time(tmp_path: Path) -> None:
    """For they may include files that change."""
    (tmp_path / "twice.toml").write_text('[composite]\nname = "Twice"\ninputs = ["x{float}[N]"]\noutputs = ["y{float}[N]"]\n'
                                         '[composite.implementation]\nlang = "python"\ncode = "return 2 * x"\n')
    code = (f"import sys\nfrom daten import operator\nprint(operator({str(tmp_path / 'twice.toml')!r})([1.0, 2.0]).numpy().tolist())\n"
            "print(*[n for n in sys.modules if n.startswith('caten.')])")
    for _ in range(2):
        results, modules = run(tmp_path / "cache", code)
        assert results == "[2.0, 4.0]"
        assert "caten.frontend.spec" in modules
    (tmp_path / "twice.toml").write_text((tmp_path / "twice.toml").read_text().replace("2 * x", "3 * x"))
    assert run(tmp_path / "cache", code)[0] == "[3.0, 6.0]"


def test_the_options_belong_to_the_key(tmp_path: Path) -> None:
    code = """
import sys
from daten import Tensor, apply, use
use("gcc", opt={opt})
print(apply("softmax", Tensor([0.0, 0.0])).numpy().tolist())
print(*[n for n in sys.modules if n.startswith('caten.')])
"""
    for opt, modules in ((2, False), (1, False), (2, True)):
        results, found = run(tmp_path, code.format(opt=opt))
        assert results == "[0.5, 0.5]"
        assert ("caten.frontend.spec" not in found) is modules


def test_the_words_of_a_graph_tell_all_that_it_depends_on(tmp_path: Path) -> None:
    def words(x: Tensor, *wanted: Tensor) -> tuple[str, ...] | None:
        refs = [t._ref for t in wanted]
        return words_of(refs, *leaves_of(refs))
    x, y = Tensor(np.ones((2, 3), np.float32)), Tensor(np.ones((2, 3), np.float32))
    graphs = [[x + y], [x + 1.0], [x + 2.0], [x - 1.0], [x + x], [(x + y).sum()], [x + y, x - y], [x - y, x + y], [x.reshape(3, 2) + 1.0],
              [x.reshape(6) + 1.0], [x.sum(axis=0)], [x.sum(axis=1)], [Tensor(np.ones((2, 4), np.float32)) + 1.0],
              [Tensor(np.ones((2, 3))) + 1.0], [x[:, 1:] + 1.0], [x[:, :2] + 1.0]]
    found = [words(x, *wanted) for wanted in graphs]
    assert None not in found
    assert len(set(found)) == len(found)
    assert words(x, y + Tensor(np.zeros((2, 3), np.float32))) == found[0]
    (tmp_path / "twice.toml").write_text('[composite]\nname = "Twice"\ninputs = ["x{float}[N M]"]\noutputs = ["y{float}[N M]"]\n'
                                         '[composite.implementation]\nlang = "python"\ncode = "return 2 * x"\n')
    assert words(x, operator(str(tmp_path / "twice.toml"))(x)) is None            # a spec of a user's may include files
