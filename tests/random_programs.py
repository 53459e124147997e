"""Random programs in index notation: maps, reductions, masks, gathers and changes in place, over a few axes.

    t1[i,j] = exp(A[i,j]) * B[j]
    Y[i] = max j: t1[i,j] + Y0[i]

`Y0` is what the caller passed as `Y`. Axes have one extent in square programs, where arrays are read at any of them.
"""
from __future__ import annotations

import random
from collections import Counter

FEATURES = ("map", "sum", "max", "min", "product", "two outputs", "square", "transposed read", "mask", "gather", "in place", "costly function", "division",
            "read several times", "chain of reductions", "axes in another order")
UNARY = ("exp({})", "sqrt(abs({}) + 0.5)", "tanh({})", "abs({})", "-{}")
BINARY = ("({} + {})", "({} - {})", "({} * {})", "({} * {})", "({} / (abs({}) + 1.0))", "maximum({}, {})", "minimum({}, {})", "where({} < 1.0, {}, 0.25)")
COSTLY = ("exp", "tanh", "sqrt")


class _Maker:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.pool = ["i", "j", "k", "l"][:self.rng.choice((2, 2, 3, 3, 4))]
        self.square = self.rng.random() < 0.4
        self.arrays: dict[str, tuple[str, ...]] = {}             # what may be read, with its axes
        self.of_reduction: set[str] = set()
        self.gathered = ""                                       # the axis of the array of indices
        self.seen: Counter[str] = Counter(["square"] if self.square else [])

    def text(self) -> str:
        """The lines of a program. What no line reads is an output."""
        for name in "ABC"[:self.rng.choice((1, 2, 2, 3))]:
            self.arrays[name] = self.axes()
        lines: list[tuple[str, tuple[str, ...], str, str]] = []
        for n in range(self.rng.choice((1, 2, 3, 3, 4, 5))):
            lines.append(self.line(f"t{n}"))
        read = " ".join([value for *_, value in lines])
        outputs = [target for target, *_ in lines if f"{target}[" not in read or self.rng.random() < 0.1]
        self.seen["two outputs"] += len(outputs) > 1
        for target, *_ in lines:
            self.seen["read several times"] += read.count(f"{target}[") > 1
        lines = self.in_place(lines, outputs[-1])
        made = []
        for target, axes, fn, value in lines:
            made.append(f"{target}[{','.join(axes)}] = {fn}{value}")
        text = "\n".join(made)
        for n, old in enumerate(outputs):
            text = text.replace(f"{old}[", f"{'YZVW'[n % 4]}{n // 4 or ''}[").replace(f"{old}0[", f"{'YZVW'[n % 4]}{n // 4 or ''}0[")
        return text

    def axes(self) -> tuple[str, ...]:
        chosen = [a for a in self.pool if self.rng.random() < 0.6] or [self.rng.choice(self.pool)]
        if self.rng.random() < 0.2:
            self.rng.shuffle(chosen)
        return tuple(chosen[:3])

    def line(self, target: str) -> tuple[str, tuple[str, ...], str, str]:
        """Target, axes, reduction and expression of a line; every axis is one of a read."""
        space = list(dict.fromkeys([*self.rng.choice(list(self.arrays.values())), *(self.axes() if self.rng.random() < 0.5 else ())]))
        reads = [self.read(space) for _ in range(self.rng.choice((1, 2, 2, 3)))]
        present = [a for a in space if any(a in axes for _, axes in reads)]
        over = [a for a in present if self.rng.random() < 0.4][:2] if self.rng.random() < 0.6 and len(present) > 1 else []
        value = self.expression(reads)
        if len(reads) > 1 and len(present) > 2 and self.rng.random() < 0.5:
            value, over = f"{reads[0][0]} * {reads[1][0]}", [a for a in present if a in reads[0][1] and a in reads[1][1]][:2]
            present = [a for a in present if any(a in axes for _, axes in reads[:2])]
        own = [a for a in present if a not in over]
        if not own:
            own, over = over[:1], over[1:]
        if len(own) > 1 and self.rng.random() < 0.15:
            self.rng.shuffle(own)
            self.seen["axes in another order"] += 1
        if self.rng.random() < 0.15 and len(present) > 1:
            a, b = self.rng.sample(present, 2)
            self.seen["mask"] += 1
            value = f"where({a} {self.rng.choice(('<', '<='))} {b}, {value}, {self.rng.choice(('0.0', '-1.5'))})"
        fn = self.rng.choice(("sum", "sum", "sum", "max", "min")) if over else ""
        self.seen[fn or "map"] += 1
        self.seen["product"] += fn == "sum" and " * " in value
        self.seen["costly function"] += any(f in value for f in COSTLY)
        self.seen["division"] += " / " in value
        if fn and any(f"{name}[" in value for name in self.of_reduction):
            self.seen["chain of reductions"] += 1
        if fn or any(f"{name}[" in value for name in self.of_reduction):
            self.of_reduction.add(target)
        self.arrays[target] = tuple(own)
        return target, tuple(own), f"{fn} {' '.join(over)}: " if fn else "", value

    def read(self, space: list[str]) -> tuple[str, tuple[str, ...]]:
        """A read at axes of the space, with these: of what was defined last with more probability. The space grows if nothing fits."""
        names = list(self.arrays)
        name = self.rng.choice([*names, *names[-2:]])
        axes = list(self.arrays[name])
        if self.square and len(axes) > 1 and self.rng.random() < 0.3:
            self.rng.shuffle(axes)
            self.seen["transposed read"] += tuple(axes) != self.arrays[name]
        elif self.square and self.rng.random() < 0.3 and len(space) >= len(axes):
            axes = self.rng.sample(space, len(axes))
        space += [a for a in axes if a not in space]
        index: list[str] = list(axes)
        if name in "ABC" and self.rng.random() < 0.1 and (self.square or axes[0] == (self.gathered or axes[0])):
            self.seen["gather"] += 1
            self.gathered = axes[0]
            index[0] = f"K[{axes[0]}]"
        return f"{name}[{','.join(index)}]", tuple(axes)

    def expression(self, reads: list[tuple[str, tuple[str, ...]]]) -> str:
        """A formula of the reads."""
        parts = [text for text, _ in reads]
        if self.rng.random() < 0.3:
            parts.append(self.rng.choice(("0.5", "1.5", "2.0")))
        while len(parts) > 1:
            a, b = parts.pop(self.rng.randrange(len(parts))), parts.pop(self.rng.randrange(len(parts)))
            parts.append(self.rng.choice(BINARY).format(a, b))
            if self.rng.random() < 0.25:
                parts[-1] = self.rng.choice(UNARY).format(parts[-1])
        return self.rng.choice(UNARY).format(parts[0]) if self.rng.random() < 0.3 else parts[0]

    def in_place(self, lines: list[tuple[str, tuple[str, ...], str, str]], output: str) -> list[tuple[str, tuple[str, ...], str, str]]:
        """Sometimes an output that holds something before: the line that defines it reads it at its own index, an earlier one anywhere."""
        if self.rng.random() > 0.25:
            return lines
        at = next(n for n, line in enumerate(lines) if line[0] == output)
        own = lines[at][1]
        reads = 0
        for n, (target, axes, fn, value) in enumerate(lines[:at + 1]):
            space = (*axes, *fn.rstrip(": ").split()[1:])
            index = list(own)
            if n < at and self.square and len(space) >= len(own) and self.rng.random() < 0.5:
                index = self.rng.sample(space, len(own))
            if set(index) <= set(space) and (n < at or not fn) and (n == at or self.rng.random() < 0.5):
                lines[n] = (target, axes, fn, f"({value} + {output}0[{','.join(index)}])")
                reads += 1
        self.seen["in place"] += reads > 0
        return lines


def random_program(seed: int) -> tuple[str, bool, Counter[str]]:
    """A program, whether its axes have one extent, and how often each feature occurs in it."""
    maker = _Maker(seed)
    return maker.text(), maker.square, maker.seen
