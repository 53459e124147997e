"""Does the rate depend on how a spec is written? `python -m benchmarks.forms [--only REGEX] [--rounds N] [--json
FILE]`.

One thread. The product of two matrices under other names, with its loops in every order, other layouts, transposed
operands, in float64, with factors, with a bias; and a convolution with other windows, strides and dilations. Each is
its own spec; the kernels of a group take turns, and each rate is compared with that of the group's first.
"""
from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np

from caten.benchmarking import machine, statistics, timing
from caten.benchmarking.statistics import Estimate

from . import processes, sampling
from .peers import environment
from .problems import Array, drawn, empty, windows

SIZE = 1024                    # of the matrices
PLACES, CHANNELS = 56, 64      # of the result of a convolution: its lines and columns, what goes in and comes out
TARGET = 0.9                   # of the rate of the first


@dataclass(frozen=True)
class Form:
    """A spec as somebody may write it. `make`: what is given, by name, the name of the result among it, and the
    function of what goes in that it should be; `sets`: it only comes out; `weight`: how much longer an operation may
    take."""

    title: str
    spec: str
    make: Callable[[], tuple[dict[str, Array], str, Callable[..., Array]]]
    flops: int
    sizes: dict[str, int] = field(default_factory=dict)
    sets: bool = False
    weight: float = 1.0


def _spec(inputs: list[str], outputs: list[str], body: str) -> str:
    quoted = [", ".join([f'"{text}"' for text in texts]) for texts in (inputs, outputs)]
    head = f'[composite]\nname = "Form"\ninputs = [{quoted[0]}]\noutputs = [{quoted[1]}]\n'
    return f'{head}\n[implementation]\ncode = """\n{body}\n"""\n'


def _product(title: str, order: str = "ijp", left: str = "", right: str = "", dtype: str = "float",
             transposed: str = "",
             names: tuple[str, ...] = tuple("ABCijpMNK")) -> Form:
    """C += A @ B. `left` and `right`: the layouts of the operands; `transposed`: which of them are, in their
    indices; `names`: of the arrays, the loops, the sizes."""
    a, b, c, *loops = names
    i, j, p, M, N, K = loops
    known = dict(zip("ijpMNK", loops, strict=True))
    A, A_at = (f"{K} {M}", f"{p} {i}") if "A" in transposed else (f"{M} {K}", f"{i} {p}")
    B, B_at = (f"{N} {K}", f"{j} {p}") if "B" in transposed else (f"{K} {N}", f"{p} {j}")
    body = f"(incf (aref {c} {i} {j}) (* (aref {a} {A_at}) (aref {b} {B_at})))"
    for loop in reversed(order):
        body = f"(dotimes ({known[loop]} {known['MNK'['ijp'.index(loop)]]}) {body})"
    spec = _spec([f"{a}{{{dtype}}}[{A}]{left}()", f"{b}{{{dtype}}}[{B}]{right}()", f"{c}{{{dtype}}}[{M} {N}]()"], [c],
                 body)
    kind = np.float64 if dtype == "double" else np.float32

    def make() -> tuple[dict[str, Array], str, Callable[..., Array]]:
        x, y = [_laid(drawn(SIZE, SIZE, low=low), kind, layout) for low, layout in ((-1.0, left), (-0.5, right))]
        return {a: x, b: y, c: _laid(np.zeros((SIZE, SIZE)), kind)}, c, (
            lambda x, y, z: z + (x.T if "A" in transposed else x) @ (y.T if "B" in transposed else y))
    return Form(title, spec, make, 2 * SIZE ** 3, weight=2.0 if dtype == "double" else 1.0)


def _laid(values: Array, dtype: type, layout: str = "") -> Array:
    """A square matrix at the beginning of a page, in columns if there is a layout."""
    made: Array = empty(len(values), len(values) * np.dtype(dtype).itemsize // 4).view(dtype)
    made = made.T if layout else made
    made[...] = values
    return made


def _scaled() -> Form:
    """As BLAS has it."""
    body = ("(dotimes (i M) (dotimes (j N) (set acc 0.0) (dotimes (p K) (incf acc (* (aref A i p) (aref B p j))))"
            " (setf (aref C i j) (+ (* alpha acc) (* beta (aref C i j))))))")
    spec = _spec(["A{float}[M K]", "B{float}[K N]", "alpha{float}[]", "beta{float}[]", "C{float}[M N]"], ["C"], body)
    return Form("alpha A B + beta C", spec, lambda: (
        {"A": drawn(SIZE, SIZE), "B": drawn(SIZE, SIZE, low=-0.5), "alpha": np.array(0.5, "f4"),
         "beta": np.array(0.25, "f4"),
         "C": drawn(SIZE, SIZE, high=2.0)}, "C", lambda A, B, alpha, beta, C: alpha * (A @ B) + beta * C),
                2 * SIZE ** 3)


def _dense() -> Form:
    body = ("(dotimes (i M) (dotimes (j N) (set acc 0.0) (dotimes (p K) (incf acc (* (aref A i p) (aref B p j))))"
            " (setf (aref C i j) (relu (+ acc (aref v j))))))")
    spec = _spec(["A{float}[M K]", "B{float}[K N]", "v{float}[N]"], ["C{float}[M N]"], body)
    return Form("relu(A B + v)", spec, lambda: (
        {"A": drawn(SIZE, SIZE), "B": drawn(SIZE, SIZE, low=-0.5), "v": drawn(SIZE), "C": empty(SIZE, SIZE)},
        "C", lambda A, B, v: np.maximum(A @ B + v, 0)), 2 * SIZE ** 3, sets=True)


def _convolution(window: int, stride: int = 1, dilation: int = 1) -> Form:
    """Padded, so that a window's middle goes over the image."""
    pad = (window - 1) // 2 * dilation
    body = f"""(dotimes (n N) (dotimes (o O) (dotimes (y H_out) (dotimes (x W_out)
  (set acc 0.0)
  (dotimes (c C) (dotimes (kh {window}) (dotimes (kw {window})
    (set h (- (+ (* y {stride}) (* kh {dilation})) {pad}))
    (set w (- (+ (* x {stride}) (* kw {dilation})) {pad}))
    (when (and (<= 0 h) (< h H) (<= 0 w) (< w W))
      (incf acc (* (aref X n c h w) (aref F o c kh kw)))))))
  (setf (aref Y n o y x) acc)))))"""
    spec = _spec(["X{float}[N C H W]", f"F{{float}}[O C {window} {window}]"], ["Y{float}[N O H_out W_out]"], body)
    side = PLACES * stride
    spread = (window - 1) * dilation + 1

    def reference(X: Array, F: Array) -> Array:
        seen = windows(X, spread, stride, pad)[:, :, ::dilation, ::dilation, :PLACES, :PLACES]
        made: Array = np.einsum("nckqyx,ockq->noyx", seen, F, optimize=True)
        return made
    return Form(f"{window} x {window}, stride {stride}, dilation {dilation}", spec, lambda: (
        {"X": drawn(1, CHANNELS, side, side), "F": drawn(CHANNELS, CHANNELS, window, window),
         "Y": empty(1, CHANNELS, PLACES, PLACES)}, "Y", reference),
        2 * (CHANNELS * window * PLACES) ** 2, {"H_out": PLACES, "W_out": PLACES}, sets=True)


GROUPS: dict[str, tuple[Form, ...]] = {
    f"product of {SIZE} x {SIZE}": (
        _product("C += A B"), _product("other names", names=tuple("QRSxyzUVW")),
        *[_product(f"loops {' '.join(order)}", "".join(order)) for order in permutations("ijp")
          if "".join(order) != "ijp"],
        _product("A in columns", left="<1 0>"), _product("B in columns", right="<1 0>"),
        _product("A transposed", transposed="A"), _product("B transposed", transposed="B"),
        _product("both transposed", transposed="AB"),
        _product("float64, two operations for one", dtype="double"), _scaled(), _dense()),
    f"convolution from {CHANNELS} to {CHANNELS} channels, {PLACES} x {PLACES} pixels": (
        _convolution(3), _convolution(1), _convolution(5), _convolution(7), _convolution(3, dilation=2),
        _convolution(3, dilation=3),
        *[_convolution(window, 2) for window in (1, 3, 5, 7)], _convolution(3, 2, 2), _convolution(3, 3)),
}


def main() -> int:
    options = _options()
    result: dict[str, Any] = {"kind": "forms", "rounds": options.rounds, "cpu_time": options.cpu_time,
                              "machine": machine.described(), "groups": {}}
    for group, forms in _chosen(options.only).items():
        task = {"group": group, "forms": forms} | sampling.task(options)
        found, why = processes.ran("benchmarks.forms_worker", task, environment(1, alone=True))
        result["groups"][group] = found | ({"failed": why} if why else {})
    sampling.save(options.json, result)
    print(markdown(result))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forms", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="REGEX",
                        help="only forms that match, and the first of their group")
    sampling.add_options(parser, 25, timing.BATCH)
    options = parser.parse_args()
    if not _chosen(options.only):
        parser.error(f"no form matches {options.only}; there are "
                     f"{'; '.join([form.title for forms in GROUPS.values() for form in forms])}")
    return options


def _chosen(only: str) -> dict[str, list[str]]:
    """The titles of the forms that match, and of the first, of each group that has some."""
    found = {group: [form.title for form in forms if re.search(only, f"{group}: {form.title}")]
             for group, forms in GROUPS.items()}
    return {group: list(dict.fromkeys([GROUPS[group][0].title, *titles])) for group, titles in found.items() if titles}


def markdown(result: dict[str, Any]) -> str:
    """A table for each group."""
    text = ["### However it is written", "",
            f"{result['machine']['cpu']}; {result['machine']['date']}; one thread, {result['rounds']} rounds.", ""]
    for group, found in result["groups"].items():
        forms = {form.title: form for form in GROUPS[group]}
        text += [f"| {group} | ms | GFLOP/s | of the first | 95 % interval |", "|---|--:|--:|--:|---|"]
        text += [_row(forms[title], fact, share(found, forms, title))
                 for title, fact in found.get("forms", {}).items() if title in forms]
        text += [*([f"\n{found['failed']}."] if "failed" in found else []), ""]
    return "\n".join(text)


def share(found: dict[str, Any], forms: dict[str, Form], title: str) -> Estimate | None:
    """The rate of a form by that of its group's first, of rounds in pairs; None where one of them was not measured."""
    first = next(iter(forms))
    base, own = [found["forms"].get(name, {}).get("seconds") for name in (first, title)]
    if not base or not own:
        return None
    factor = forms[title].flops * forms[title].weight / forms[first].flops
    pairs = list(zip(base, own, strict=False))
    by = statistics.paired_ratio([[a for a, _ in pairs]], [[b for _, b in pairs]])
    return Estimate(by.value * factor, by.low * factor, by.high * factor)


def _row(form: Form, fact: dict[str, Any], by: Estimate | None) -> str:
    if by is None:
        return f"| {form.title} | {fact.get('failed', '-')} | - | - | - |"
    seconds = statistics.median(fact["seconds"]).value
    rate = f"{form.flops / seconds / 1e9:.1f}"
    return f"| {form.title} | {seconds * 1e3:.3g} | {rate} | {by.value:.2f} | {by.low:.2f} … {by.high:.2f} |"


if __name__ == "__main__":
    sys.exit(main())
