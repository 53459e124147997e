"""Texts of the stages with random edits: forms copied, exchanged, removed, or replaced by another word."""
from __future__ import annotations

import copy
import random
import re
from collections.abc import Sequence
from pathlib import Path

from caten import driver, loading
from caten.core.text import show
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.tensor.fused_text import fused
from caten.tensor.values import TensorProgram

SAMPLES = Path(__file__).parents[2] / "samples"
NAMES = ("gemm", "softmax", "argmax", "complex_multiply", "transpose", "gather", "prefix_sum", "conv2d", "mandelbrot", "gemm_bias_relu", "histogram", "stencil")
# Values that no sample has: a choice by index, a checked index.
WHOLE_ARRAYS = """[composite]
name = "Joined"
inputs  = ["X{float}[M N]", "I{int}[K]"]
outputs = ["Y{float}[(+ M K) N]"]

[implementation]
lang = "python"
code = "return np.concatenate((np.exp(X - X.max(axis=1, keepdims=True)), X[I]))"
"""
OPTIONS = Options(runtime="gcc", config=(("MARCH", "x86-64-v3"),))
WORDS = ("0", "1", "-1", "3", "8", "0.0", "true", "-inf", "nan:f64", "1:u8", "9223372036854775807", "-9223372036854775808", "9" * 20, '"x"', "()", "(0)", "i", "j", "N", "M", "K",
         "f32", "i64", "bool", "c64", "f64", "u8", "register", "stack", "scratch", "global", "parallel", "unroll", "serial", "in", "out", "inout", "max", "mul", "add", "vec",
         "(barrier)", "(fail 3)", "(+ i 1)", "(aref X i)", "(splat 8 0.0)", "(vref X 8 (i))", "(size N)", "(let q i64 3)", "(local T f32 (N) scratch)", "(for z 0 3 1 serial)")
# Where most edits are made, and the other clauses that are edited: texts that only people read are left as they are.
NESTS = frozenset({"kernel", "body", "define", "group"})
CLAUSES = NESTS | {"buffer", "size", "scalar", "ensure", "opt", "target", "schedule", "case", "call", "result", "yield"}
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[()]|[^\s()"]+')

Tree = list["Tree | str"]


def texts() -> list[str]:
    """The text of each sample in NAMES, and of WHOLE_ARRAYS, at every level, and with the kernels of fusion."""
    found = []
    specs = {name: (SAMPLES / f"{name}.toml").read_text("utf-8") for name in NAMES} | {"joined": WHOLE_ARRAYS}
    for name, spec in specs.items():
        program = loading.load_programs(SpecText(f"{name}.toml", spec), OPTIONS)[0]
        values, loops = (driver.advance(program, level, OPTIONS) for level in ("tensor", "loop"))
        assert isinstance(values, TensorProgram)
        found += [show(program), show(values), show(fused(values)), show(loops)]
    return found


def tree_of(text: str) -> Tree:
    stack: list[Tree] = [[]]
    for token in _TOKEN.findall(text):
        if token == "(":
            stack.append([])
        elif token == ")":
            stack[-2].append(stack.pop())
        else:
            stack[-1].append(token)
    whole = stack[0][0]
    assert isinstance(whole, list)
    return whole


def text_of(tree: Tree | str) -> str:
    return tree if isinstance(tree, str) else f"({' '.join([text_of(part) for part in tree])})"


def places(tree: Tree) -> list[tuple[Tree, int]]:
    """Every part inside a tree, as the list that holds it and the position there."""
    found: list[tuple[Tree, int]] = []
    for n, part in enumerate(tree):
        found.append((tree, n))
        if isinstance(part, list):
            found += places(part)
    return found


def mutated(rng: random.Random, among: Sequence[str]) -> str:
    """One of the texts with one to three random edits."""
    whole = tree_of(rng.choice(among))
    clauses: list[Tree] = [c for c in whole if isinstance(c, list) and c[0] in CLAUSES]
    nests = [c for c in clauses if c and c[0] in NESTS]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        root: Tree = rng.choice(nests) if rng.random() < 0.8 and nests else [*clauses]
        found = places(root)
        atoms = [(held, n) for held, n in found if n and isinstance(held[n], str)]
        if atoms and rng.random() < 0.6:                          # a name or number becomes another one: many of these are still programs
            (held, n), (other, m) = rng.choice(atoms), rng.choice(atoms)
            held[n] = other[m]
        elif found:
            _edit(rng, *rng.choice(found), *rng.choice(found))
    return text_of(whole)


def _edit(rng: random.Random, held: Tree, n: int, other: Tree, m: int) -> None:
    match rng.choice("wwwwwcccccrrriiixxnn"):
        case "w":
            held[n] = rng.choice(WORDS)
        case "c":
            held[n] = copy.deepcopy(other[m])
        case "r":
            del held[n]
        case "i":
            held.insert(n, copy.deepcopy(other[m]))
        case "x":
            held[n], other[m] = copy.deepcopy(other[m]), copy.deepcopy(held[n])
        case "n":
            held.insert(n, rng.choice(WORDS))
