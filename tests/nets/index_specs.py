"""Random programs in index notation as specs: written in NumPy or in loops, with other names, orders and sizes."""
from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from spec_forms import RandomSpec, Tensor

from index_programs import (
    Program,
    Sizes,
    axes_in,
    indices_of,
    inputs_of,
    permuted,
    program,
    renamed,
    reordered,
    written,
)
from random_programs import random_program

EXTENTS = (0, 1, 1, 2, 3, 4, 5, 7, 8, 9)
LONG = (16, 17, 33)                    # of programs with few axes
FORMS = ("numpy", "python", "loops", "loops", "around")
CHANGES = (("renamed", renamed), ("permuted", permuted), ("reordered", reordered))


@dataclass(frozen=True)
class IndexSpec(RandomSpec):
    """A spec of the program `lines`, all of whose axes have one extent if it is `square`."""

    lines: str = ""
    square: bool = False
    written: str = ""

    def text(self) -> str:
        """The spec as a file, with how to run it in comments."""
        lines = "".join([f"# {line}\n" for line in self.lines.splitlines()])
        return f"{lines}# sizes {dict(self.sizes)}, data seed {self.seed}\n{self.written}"

    def functions(self) -> set[str]:
        """Every word of the body, and what it is in Lisp."""
        words = set(re.findall(r"[a-z]+", self.written))
        return words | {short for short, long in (("max", "maximum"), ("min", "minimum")) if long in words}

    def smaller(self) -> Iterator[RandomSpec]:
        """The same without a line that no other one reads, with a part of an expression in its place, and with smaller sizes."""
        lines = self.lines.splitlines()
        for n, line in enumerate(lines):
            others = lines[:n] + lines[n + 1:]
            if others and f"{line.partition('[')[0]}[" not in "".join([o.partition(" = ")[2] for o in others]):
                yield made("\n".join(others), self.square, self.seed, dict(self.sizes))
        for name, value in self.sizes:
            for less in range(value):
                yield replace(self, sizes=tuple([(k, less if k == name else v) for k, v in self.sizes]))
        for n, line in enumerate(lines):
            head, colon, expr = line.rpartition(": ") if ": " in line else line.partition(" = ")
            for part in ast.iter_child_nodes(ast.parse(expr, mode="eval").body):
                if isinstance(part, ast.expr) and not isinstance(part, ast.Name):
                    yield made("\n".join([*lines[:n], f"{head}{colon}{ast.unparse(part)}", *lines[n + 1:]]), self.square, self.seed, dict(self.sizes))


def index_spec(seed: int) -> IndexSpec:
    """The spec of a seed."""
    lines, square, seen = random_program(seed)
    spec = made(lines, square, seed, None)
    return replace(spec, features=(*spec.features, *[f for f, count in seen.items() if count]))


def made(text: str, square: bool, seed: int, extents: dict[str, int] | None) -> IndexSpec:
    """The spec of a program, written as the seed has it. `extents`: of sizes, where they are known."""
    rng = random.Random(seed)
    form = rng.choice(FORMS)
    numbers = rng.random() < 0.3
    chosen = [(what, change) for what, change in CHANGES if rng.random() < 0.4 and not (what == "permuted" and square)]
    fails = rng.random() < 0.1
    drawn = random.Random(seed + 1)
    lines = program(text)
    for _, change in chosen:
        lines = change(lines, random.Random(seed))
    sizes = Sizes(square, range(1, 6)).of(lines, rng if numbers else None)
    told, spec = written(lines, sizes, form, random.Random(seed), f"P{seed}")
    few = len(axes_in(lines)) < 3
    values = {name: drawn.choice(EXTENTS + LONG if few else EXTENTS) for name in sorted(set(sizes.values())) if not name.isdigit()}
    if extents is not None:
        values = {name: extents.get(name, value) for name, value in values.items()}
    return IndexSpec(f"P{seed}", tuple(tensors(lines, sizes, fails)), (), (), tuple(values.items()), seed,
                     features=(*told[:1], *[what for what, _ in chosen], *["numbers"] * numbers, *told[1:]), lines=text, square=square, written=spec.text)


def tensors(lines: Program, sizes: dict[str, str], fails: bool) -> list[Tensor]:
    """The arrays of indices, with the extent below which the indices are; `fails`: an index may be that extent."""
    inputs, found = inputs_of(lines), []
    for name in sorted(indices_of(lines)):
        shortest = sizes[inputs[name][0]]
        found.append(Tensor(name, "i32", (shortest,), (0,), f"(+ {shortest} 1)" if fails else shortest))
    return found

