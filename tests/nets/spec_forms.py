"""Specs as data that can be drawn and shrunk: tensors, and bodies of nested forms."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

Form = Any                             # a symbol or number as text, or a tuple of forms

EXTENTS = (0, 1, 2, 3, 5, 7, 8, 16, 17, 33)
LITERALS = (1, 2, 3, 5, 7, 8, 16, 17, 33)
ITERATIONS = 2500                      # of one nest, so that the interpreter keeps up
WORDS = {"f16": "half", "bf16": "bfloat16", "f32": "float", "f64": "double", "bool": "bool", **{f"{k}{b}": f"{w}{b}" for k, w in (("i", "int"), ("u", "uint")) for b in (8, 16, 32, 64)}}
ALL_WORDS = {**WORDS, "i4": "int4", "u4": "uint4", "c64": "complex64", "c128": "complex128"}
FLOATS, INTS = ("f32", "f64", "f16", "bf16"), tuple(d for d in WORDS if d[0] in "iu")
EXACT = ("+", "-", "*", "/", "max", "min", "fmax", "fmin", "abs", "sqrt", "floor", "ceil", "trunc", "round", "sign", "relu", "clip", "fma")
INEXACT = ("exp", "log", "sin", "cos", "tanh", "erf", "sigmoid", "expm1", "log1p", "rsqrt", "atan", "cbrt", "exp2", "log2", "pow", "hypot", "floordiv", "mod",
           "truncdiv", "truncmod", "sinh", "asinh")
INTEGRAL = ("+", "-", "*", "floordiv", "mod", "truncdiv", "truncmod", "max", "min", "fmax", "fmin", "logand", "logior", "logxor", "shl", "shr", "abs", "lognot",
            "clip", "fma", "relu")
ARITY = {"abs": 1, "lognot": 1, "clip": 3, "fma": 3, "pow": 2, "hypot": 2, "sign": 1, "relu": 1, "floordiv": 2, "mod": 2, "truncdiv": 2, "truncmod": 2}
UPDATES = ("incf", "decf", "mulcf", "maxcf", "mincf")


@dataclass(frozen=True)
class Tensor:
    """`dims`: a size's name, a number, or arithmetic in prefix form each; `below`: its elements are indices into an axis of this dim;
    `where`: what must hold between sizes."""

    name: str
    dtype: str
    dims: tuple[str, ...]
    order: tuple[int, ...]
    below: str = ""
    where: str = ""

    def declared(self) -> str:
        order = f"<{' '.join(map(str, self.order))}>" if self.order != tuple(range(len(self.dims))) else ""
        return f"{self.name}{{{ALL_WORDS[self.dtype]}}}[{' '.join(self.dims)}]{order}" + (f"(where {self.where})" if self.where else "")


@dataclass(frozen=True)
class RandomSpec:
    """A spec with the sizes and the seed of the data that it is run with. `strided`: arrays that pass strides; `tame`: every function of floats in it
    is correctly rounded, and none may choose between zeros. `callees`: texts of composites that it calls; `scalars`: the values of arguments
    that are not drawn."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    body: tuple[Form, ...]
    sizes: tuple[tuple[str, int], ...]
    seed: int
    strided: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    callees: tuple[str, ...] = ()
    scalars: tuple[tuple[str, int], ...] = ()

    @property
    def tame(self) -> bool:
        return not self.functions() & {*INEXACT, "fmax", "fmin"}

    def functions(self) -> set[str]:
        """Every symbol of the body, and of the bodies that it calls."""
        return {*symbols(self.body), *" ".join(self.callees).replace("(", " ").replace(")", " ").split()}

    def text(self) -> str:
        """The spec as a file, with how to run it in comments."""
        known = {t.name for t in self.inputs}
        outputs = [f'"{t.name if t.name in known else t.declared()}"' for t in self.outputs]
        body = "\n".join(shown(f) for f in self.body)
        about = f"# sizes {dict(self.sizes)}, scalars {dict(self.scalars)}, data seed {self.seed}, strided {' '.join(self.strided) or 'none'}\n"
        head, part = ("[[composite]]", "[composite.implementation]") if self.callees else ("[composite]", "[implementation]")
        return (about + "".join(self.callees) + f'{head}\nname = "{self.name}"\ninputs = [{", ".join(repr(t.declared()) for t in self.inputs)}]\n'.replace("'", '"')
                + f'outputs = [{", ".join(outputs)}]\n\n{part}\ncode = """\n{body}\n"""\n')


def extent_of(dim: str, sizes: Mapping[str, int]) -> int:
    """The value of an axis: a number, a size, or sums, differences and products of them in prefix form."""
    def value(words: list[str]) -> int:
        word = words.pop(0)
        if word != "(":
            return int(word) if word.lstrip("-").isdigit() else sizes[word]
        fn, parts = words.pop(0), []
        while words[0] != ")":
            parts.append(value(words))
        words.pop(0)
        return {"+": sum, "*": prod, "-": lambda p: p[0] - sum(p[1:])}[fn](parts)
    return value(dim.replace("(", " ( ").replace(")", " ) ").split())


def symbols(form: Form) -> list[str]:
    """Every symbol in a form."""
    return [form] if isinstance(form, str) else [s for part in form for s in symbols(part)]


def shown(form: Form, indent: int = 0) -> str:
    """A form as text, statements of a block on lines of their own."""
    if isinstance(form, str):
        return form
    flat = "(" + " ".join(shown(f) for f in form) + ")"
    if len(flat) + indent < 100 or form[0] not in ("dotimes", "loop", "when", "unless", "if", "progn"):
        return flat
    pad = "\n" + " " * (indent + 2)
    return f"({form[0]} {shown(form[1])}" + "".join(pad + shown(f, indent + 2) for f in form[2:]) + ")"


def writes(body: list[Form], name: str) -> bool:
    """Does a statement store into this tensor?"""
    return any(isinstance(f, tuple) and ((f and f[0] in ("setf", *UPDATES) and name in symbols(f[1])[:2]) or writes(list(f), name)) for f in body)
