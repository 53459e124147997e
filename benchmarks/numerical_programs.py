"""The programs of samples/programs as Python runs them: a function of their body, and arrays to call it with."""
from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tomli

from caten.core.dtypes import DTYPES, SPELLINGS
from caten.frontend.generic_signature import Tensor, tensors

FOLDER = Path(__file__).resolve().parent.parent / "samples" / "programs"
# Factorisations and solvers get a matrix that has factors.
DEFINITE = ("cholesky", "lu", "ludcmp", "trisolv")
SMALL_STEPS = {"dt": 1e-3, "dx": 0.05, "rho": 1.0, "nu": 0.1}


@dataclass(frozen=True)
class NumericalProgram:
    """A program of samples/programs. `outputs`: as the spec names them; those of them that are inputs, too, are
    changed in place."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[str, ...]
    made: tuple[Tensor, ...]                               # the outputs that are no inputs
    code: str
    small: Mapping[str, int]
    large: Mapping[str, int]
    given: Mapping[str, Any]                               # arrays of the test case

    def python(self, compiled: Callable[[Any], Any] = lambda f: f) -> Callable[..., Any]:
        """The body as a function of inputs, other outputs and sizes. `compiled`: a decorator, such as numba's."""
        names = [t.name for t in self.inputs]
        ends = "return" in re.sub(r"(?m)^[ \t].*$", "", self.code)
        code = self.code if ends else f"{self.code}\nreturn {', '.join(self.outputs)}"
        parameters = dict.fromkeys([*names, *[t.name for t in self.made], *self.small])
        scope: dict[str, Any] = {"np": np}
        exec(f"def {self.name}({', '.join(parameters)}):\n{textwrap.indent(code, '    ')}\n", scope)
        function: Callable[..., Any] = compiled(scope[self.name])
        return function

    def arguments(self, sizes: Mapping[str, int], seed: int = 0) -> dict[str, Any]:
        """Inputs by name: random arrays for which the program is well conditioned."""
        rng = np.random.default_rng(seed)
        found = {t.name: self._drawn(t, sizes, rng) for t in self.inputs}
        if self.name in DEFINITE:
            first = self.inputs[0].name
            found[first] = found[first] @ found[first].T + np.eye(len(found[first])) * len(found[first])
        return found

    def _drawn(self, t: Tensor, sizes: Mapping[str, int], rng: np.random.Generator) -> Any:
        dtype, shape = DTYPES[SPELLINGS[t.word]], [extent(e, sizes) for e in t.shape]
        if t.name in self.given and sizes == self.small:
            return np.array(self.given[t.name], dtype.numpy)
        if t.name in SMALL_STEPS or t.name in sizes or not shape:
            return np.dtype(dtype.numpy).type(sizes.get(t.name, SMALL_STEPS.get(t.name, 3)))
        if t.name == "start":                                  # of the rows of a sparse matrix
            return np.linspace(0, sizes["K"], shape[0]).astype(int)
        if t.name == "column":
            return rng.integers(0, sizes["N"], shape)
        if t.name in ("xs", "ys"):
            return np.linspace(-2.0 if t.name == "xs" else -1.2, 0.5 if t.name == "xs" else 1.2, shape[0])
        if dtype.kind == "float":
            return (rng.uniform(0.1, 1.0, shape) * (0.1 if self.name == "durbin" else 1.0)).astype(dtype.numpy)
        return rng.integers(0, 5 if dtype.bits == 8 and dtype.kind == "int" else 100, shape).astype(dtype.numpy)

    def results(self, sizes: Mapping[str, int]) -> list[np.ndarray]:
        """Arrays for the outputs that are no inputs."""
        return [np.zeros([extent(e, sizes) for e in t.shape], DTYPES[SPELLINGS[t.word]].numpy) for t in self.made]


def extent(written: str, sizes: Mapping[str, int]) -> int:
    """`N`, `3`, `(+ M 1)`."""
    if not written.startswith("("):
        return int(written) if written.isdigit() else sizes[written]
    fn, *parts = re.findall(r"\([^()]*\)|[^\s()]+", written[1:-1])
    first, *others = [extent(part, sizes) for part in parts]
    for other in others:
        first = {"+": first + other, "-": first - other, "*": first * other}[fn]
    return first


def programs() -> list[NumericalProgram]:
    """All of them, by name."""
    return [_read(path) for path in sorted(FOLDER.glob("*.toml"))]


def _read(path: Path) -> NumericalProgram:
    table = tomli.loads(path.read_text())
    composite, case = table["composite"], table["test"]["case"][0]
    made = {t.name: t for t in tensors(composite["outputs"])}
    outputs = tuple([o.partition("{")[0] for o in composite["outputs"]])
    return NumericalProgram(composite["name"], tensors(composite["inputs"]), outputs, tuple(made.values()),
                            table["implementation"]["code"].strip("\n"), case["sizes"], table["bench"]["sizes"]["M"],
                            case.get("input", {}))
