"""What a type checker says of a user's script, as the package carries its types (py.typed), and of our own code."""
from __future__ import annotations

import importlib.util
import site
import subprocess
import sys
from pathlib import Path

import pytest

import caten
import daten

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = '''\
import numpy as np

import caten

gemm = caten.compile("gemm.toml")
a, b, c = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32), np.zeros((2, 4), np.float32)
gemm(a, b, c)
gemm(a, b, C=c)
gemm.bind(a, b, c)()
name: str = gemm.name
sizes: tuple[str, ...] = gemm.sizes
first: caten.Argument = gemm.arguments[0]
shape: tuple[int | str, ...] = first.shape
text: str = gemm.source + gemm.schedule + gemm.signature

ops = caten.compile(["gemm.toml", "scale.toml"], runtime="gcc", sizes={"M": 100}, strided=["A"])
ops.Scale(2.0, a, out={"y": c})
ops["Gemm"](a, b, c)
names: list[str] = list(ops)

tested: caten.TestResults = caten.test("gemm.toml", tags=["edge"], jobs=2)
failed: list[str] = [case.case for case in tested.cases if not case.passed]
ratios: list[float] = [output.ratio for file in tested.files for case in file.cases for output in case.outputs]
measured: caten.BenchResults = caten.bench(["gemm.toml"], ["clang", "gcc"], sizes=[{"M": 64, "N": 64, "K": 64}])
times: list[float] = [row.seconds.value for row in measured.rows]
tuned: tuple[caten.TuneResult, ...] = caten.tune("gemm.toml", budget=2.0, sizes={"M": 64})
gains: list[float] = [result.record.gain for result in tuned if result.record is not None]

again: caten.Operator = caten.load("gemm.so")
library: caten.Operators = caten.load_library("library.so")
try:
    again(a, b, c)
except caten.CatenError as problem:
    codes: list[str] = [d.code for d in problem.diagnostics]
'''
MODEL = '''\
import numpy as np

import daten
from daten import nn, optim


class Net(nn.Module):
    def __init__(self) -> None:
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x: daten.Tensor) -> daten.Tensor:
        hidden: daten.Tensor = self.first(x).relu()
        return hidden @ self.second.weight.T + 1.0


net = Net()
rule = optim.Adam(net.parameters(), lr=1e-3)
loss: daten.Tensor = net(daten.Tensor(np.ones((2, 4), np.float32))).cross_entropy(daten.Tensor([0, 2]))
rule.step(loss)
number: float = loss.item()
shape: tuple[int, ...] = net.first.weight.shape
state: dict[str, np.ndarray] = net.state_dict()
[first] = daten.gradients((loss * loss).sum(), net.parameters()[:1])
found: np.ndarray = first.numpy()
'''
WRONG = '''\
import daten
import caten

gemm = caten.compile("gemm.toml")
number: int = gemm.name
caten.compile("gemm.toml", opt="fast")
caten.compile("gemm.toml", levels=3)
caten.compile(["gemm.toml"])(1)
gemm.nothing
caten.nothing
caten.test("gemm.toml").cases[0].nothing
caten.bench("gemm.toml", sizes={"M": "64"})
daten.Tensor([1.0]).shape.nothing
daten.nothing
'''


@pytest.fixture(scope="module")
def checked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """What mypy says of the three scripts, in an environment in which the package is installed. What it knows of NumPy stays in pytest's cache."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    folder = tmp_path_factory.mktemp("user")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    [packages] = (folder / "venv").glob("lib/python*/site-packages")
    for package in (caten, daten):
        (packages / package.__name__).symlink_to(Path(package.__file__).parent)
    (packages / "others.pth").write_text("\n".join([p for p in site.getsitepackages() if Path(p).is_dir()]))
    (folder / "script.py").write_text(SCRIPT)
    (folder / "script_daten.py").write_text(MODEL)
    (folder / "wrong.py").write_text(WRONG)
    cache = getattr(request.config, "cache", None)                # None: -p no:cacheprovider
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(folder / "venv/bin/python"), "--no-error-summary",
               "--cache-dir", str(folder / "cache" if cache is None else cache.mkdir("types")), "script.py", "script_daten.py", "wrong.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
    lines = (done.stdout + done.stderr).splitlines()
    return "\n".join([n for n in lines if n.startswith("script")]), "\n".join([n for n in lines if not n.startswith("script")])


def test_our_own_code_is_clean() -> None:
    """Beside the other tests, on one of the cores: alone it would hold them up for half a minute."""
    done = subprocess.run([sys.executable, "-m", "mypy"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_script_is_clean(checked: tuple[str, str]) -> None:
    assert checked[0] == ""


def test_mistakes_are_found(checked: tuple[str, str]) -> None:
    found = checked[1].splitlines()
    wrong = [int(line.split(":")[1]) for line in found if ": error:" in line]
    assert sorted(set(wrong)) == [5, 6, 7, 8, 9, 10, 11, 12, 13, 14], checked[1]
    assert "py.typed" not in checked[1]
