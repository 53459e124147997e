"""Random schedule steps: of every primitive, for a program as it is now, with words that fit it more often than not."""
from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from caten.core.expr import Const, Op
from caten.core.text import form_of
from caten.loop.affine import canonical
from caten.loop.statements import Aref, Fail, For, If, Incf, Local, LoopProgram, Setf, Vref
from caten.schedule.analysis.loop_queries import loops_in
from caten.schedule.script import APPLIED, PRIMITIVES, Step

COUNTS = ("1", "2", "2", "3", "4", "4", "4", "5", "8", "8", "16")
ODD_COUNTS = ("0", "7", "64", "1000", "999999999")
UNKNOWN = ("nowhere", "i", "T", "")
RARE = ("unguard", "spread", "transpose", "stream", "bind", "separate", "inline", "compute_at", "merge", "flatten", "unfuse", "unflatten", "precompute", "prefetch_at")
UNFIT = 0.1                            # of the steps have words that were drawn by their kind alone


class Sight:
    """What a step may name in a program."""

    def __init__(self, node: LoopProgram) -> None:
        self.node = node
        self.loops = [loop.name for loop in loops_in(node)]
        self.kernels = [k.name for k in node.kernels]

    @cached_property
    def checked(self) -> list[str]:
        """The loops with checks."""
        return [name for name, loop in self.by_name.items() if any(isinstance(n, Fail) for n in loop.unique())]

    @cached_property
    def declared(self) -> list[str]:
        return [n.name for k in self.node.kernels for n in k.unique() if isinstance(n, Local)]

    @cached_property
    def arrays(self) -> list[str]:
        return sorted({n.buffer for k in self.node.kernels for n in k.unique() if isinstance(n, Aref | Vref)})

    @cached_property
    def by_name(self) -> dict[str, For]:
        return {loop.name: loop for loop in loops_in(self.node)}

    @cached_property
    def nested(self) -> list[tuple[str, str]]:
        """A loop and the only one directly inside it."""
        return [(loop.name, loop.body[0].name) for loop in loops_in(self.node) if len(loop.body) == 1 and isinstance(loop.body[0], For)]

    @cached_property
    def neighbours(self) -> list[tuple[str, str]]:
        """Loops that follow each other in a list."""
        lists = [b for k in self.node.kernels for n in k.unique() for b in (getattr(n, "body", ()), getattr(n, "then", ()), getattr(n, "otherwise", ()))]
        return [(a.name, b.name) for body in lists for a, b in itertools.pairwise(body) if isinstance(a, For) and isinstance(b, For)]

    @cached_property
    def constant(self) -> list[str]:
        """Loops whose lengths are numbers."""
        return [loop.name for loop in loops_in(self.node) if isinstance(canonical(loop.hi - loop.lo), Const)]

    @cached_property
    def guarded(self) -> list[str]:
        """Loops around a condition."""
        return [loop.name for loop in loops_in(self.node) if any(isinstance(n, If) for n in loop.unique())]

    def inside(self, name: str) -> list[str]:
        """The loops inside a loop."""
        return [loop.name for loop in loops_in(self.by_name[name].body)] if name in self.by_name else []

    def around(self, name: str) -> list[str]:
        """The loops around a loop."""
        return [outer for outer in self.loops if name in self.inside(outer)]

    def chain(self, name: str) -> list[str]:
        """The perfect nest that begins at a loop, conditions between its loops left out."""
        names, body = [name], self.by_name[name].body
        while len(body) == 1 and isinstance(body[0], For | If):
            if isinstance(body[0], For):
                names.append(body[0].name)
                body = body[0].body
            else:
                body = body[0].then
        return names

    def used(self, name: str, kinds: Any = (Aref, Vref)) -> list[str]:
        """The arrays that are used in a loop."""
        return sorted({n.buffer for n in self.by_name[name].unique() if isinstance(n, kinds)}) if name in self.by_name else []


class Drawer:
    """Draws steps for a program."""

    def __init__(self, rng: random.Random, node: LoopProgram) -> None:
        self.rng, self.see = rng, Sight(node)

    def step(self, name: str = "") -> Step:
        """A step of this primitive, or of any."""
        if not name:
            name = self.pick(RARE if self.rng.random() < 0.35 else tuple([p for p in PRIMITIVES if p != "unchecked"]))
            if name == "unguard" and self.see.checked:             # checks are rare, and so are tiles to unguard
                name = "unchecked"
        fitting: Callable[[], Sequence[Any]] | None = getattr(self, f"_{name}", None)
        if fitting is None or not self.see.loops or self.rng.random() < UNFIT:
            return name, *self.words(name)
        return name, *fitting()

    def words(self, name: str) -> list[Any]:
        """Words of the right kinds, and perhaps of none."""
        row = PRIMITIVES[name]
        kinds = [*row.words, *row.options[: self.rng.randrange(len(row.options) + 1)]]
        if row.rest and len(kinds) == len(row.words) + len(row.options):
            kinds += [row.rest] * self.rng.randrange(3)
        return [self._of_kind(kind) for kind in kinds]

    def _of_kind(self, kind: Any) -> Any:
        if isinstance(kind, tuple):
            return self.pick(kind)
        if kind == "condition":
            return self._condition()
        if kind == "extent":
            return self._extent()
        if kind == "count" or (kind == "loop or count" and self.chance(0.5)):
            return self.pick((*COUNTS, *ODD_COUNTS))
        known = {"buffer": self.see.arrays, "kernel": self.see.kernels, "name": ["t", "q", *self.see.loops[:1]]}.get(kind, self.see.loops)
        return self.pick(known) if known and self.chance(0.9) else self.pick(UNKNOWN) or "x"

    def pick(self, values: Sequence[Any]) -> Any:
        return values[self.rng.randrange(len(values))]

    def chance(self, part: float) -> bool:
        return self.rng.random() < part

    # -- what fits --------------------------------------------------------------------------------------------------------------------------

    def _loop(self, wanted: Sequence[str] = ()) -> str:
        """One of these loops mostly, else any."""
        return str(self.pick(wanted if wanted and self.chance(0.9) else self.see.loops))

    def _local(self) -> str:
        return str(self.pick(self.see.declared or self.see.arrays or UNKNOWN[:2]))

    def _count(self) -> str:
        return str(self.pick(COUNTS))

    def _condition(self) -> Any:
        sizes = self.see.node.sizes or ("N",)
        one = (self.pick(("<", "<=", "=", ">=")), self.pick(sizes), self.pick(("1", "2", "4", "8", "17", *sizes)))
        other = ("=", ("mod", self.pick(sizes), "4"), "0")
        return self.pick((one, one, other, ("and", one, other), ("and", other, ("<", self.pick(self.see.loops or sizes), "2"))))

    def _split(self) -> Sequence[Any]:
        words = [self._loop(), self._count(), self.pick(("cut", "min", "pad", "overlap"))]
        return [*words, "outer", "inner"] if self.chance(0.05) else words[: self.rng.choice((2, 3, 3))]

    def _reorder(self) -> Sequence[Any]:
        chain = self.see.chain(self._loop([a for a, _ in self.see.nested]))
        start = self.rng.randrange(len(chain))
        part = chain[start:start + self.rng.randrange(2, 5)] if self.chance(0.8) else chain
        return self.rng.sample(part, len(part)) if len(part) > 1 else self.rng.sample(self.see.loops, min(2, len(self.see.loops)))

    def _vectorize(self) -> Sequence[Any]:
        return [self._loop(self.see.constant)]

    def _jam(self) -> Sequence[Any]:
        return [self._loop([name for name in self.see.constant if self.see.inside(name)] or self.see.constant)]

    def _partition(self) -> Sequence[Any]:
        return [self._loop(self.see.guarded)]

    def _interior(self) -> Sequence[Any]:
        return [self._loop(self.see.guarded)]

    def _unroll(self) -> Sequence[Any]:
        return [self._loop(self.see.constant), *self.pick(((), ("mark",), ("full",)))]

    def _bind(self) -> Sequence[Any]:
        return self.pick(((self._loop(self.see.constant), "block"), (self._loop([loop for loop in self.see.loops if not self.see.around(loop)]), "grid")))  # type: ignore[no-any-return]   # of pairs

    def _spread(self) -> Sequence[Any]:
        return [self._loop([loop for loop in self.see.loops if self.see.inside(loop)]), self.pick(("2", "4", "8", "16", "3"))]

    def _stage(self) -> Sequence[Any]:
        at = self._loop()
        how = self.pick(("read", "read", "write", "accumulate", "partial", "begin", "finish", "tree"))
        space = self.pick(("register", "stack", "scratch", "scratch", "shared" if how == "read" and self.chance(0.5) else "stack"))
        axes = [at, *self.see.inside(at)]
        wanted = self.rng.sample(axes, self.rng.randrange(len(axes) + 1)) if self.chance(0.7) else []
        named: list[Any] = wanted[:4]
        if how == "read" and len(named) > 1 and self.chance(0.3):
            named = [tuple(named[:2]), *named[2:]]                    # a window and what it moves over
        return [at, self.pick(self.see.used(at) or ["T"]), how, space, *named]

    def _precompute(self) -> Sequence[Any]:
        return [self._local()]

    def _prefetch(self) -> Sequence[Any]:
        at = self._loop()
        return [at, self.pick(self.see.used(at) or ["T"]), self._count(), *self.pick(((), ("write",)))]

    def _prefetch_at(self) -> Sequence[Any]:
        at = self._loop([loop for loop in self.see.loops if self.see.around(loop)])
        return [at, self.pick(self.see.around(at) or [at]), self.pick(self.see.arrays or ["T"]), self._count()]

    def _stream(self) -> Sequence[Any]:
        at = self._loop([loop for loop in self.see.loops if self.see.used(loop, Vref)])
        return [at, self.pick(self.see.used(at, Vref) or self.see.arrays or ["T"])]

    def _pair(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Any]:
        return self.pick(pairs) if pairs and self.chance(0.9) else [self._loop(), self._loop()]  # type: ignore[no-any-return]   # of pairs

    def _transpose(self) -> Sequence[Any]:
        return self._pair([p for p in self.see.nested if set(p) <= set(self.see.constant)] or self.see.nested)

    def _fuse(self) -> Sequence[Any]:
        return self._pair(self.see.nested)

    def _extent(self) -> Any:
        """A size, a number or a product."""
        one = self.pick((*(self.see.node.sizes or ("N",)), *COUNTS))
        return self.pick((one, one, ("*", self.pick(("2", "3")), one), ("-", one, "1")))

    def _unfuse(self) -> Sequence[Any]:
        at = self._loop([loop for loop, found in self.see.by_name.items() if any(factors(found.hi))])
        found = factors(self.see.by_name[at].hi) if at in self.see.by_name else []
        return [at, self.pick(found) if found and self.chance(0.8) else self._extent(), *self.pick(((), (), ("row", "column")))]

    def _unflatten(self) -> Sequence[Any]:
        array, axis = self.pick(self.see.arrays or ["T"]), self.rng.randrange(2)
        lengths = [form_of(loop.hi) for loop in self.see.by_name.values()]
        return [array, str(axis), self.pick(lengths) if lengths and self.chance(0.7) else self._extent()]

    def _merge(self) -> Sequence[Any]:
        return self._pair(self.see.neighbours)

    def _fission(self) -> Sequence[Any]:
        at = self._loop([name for name, loop in self.see.by_name.items() if len(loop.body) > 1])
        return [at, self.pick(("1", "1", "2", *self.see.inside(at)))]

    def _compute_at(self) -> Sequence[Any]:
        return [self._local(), self._loop(), *self.pick(((), ("stack",), ("scratch",), ("register",)))]

    def _inline(self) -> Sequence[Any]:
        return [self._local()]

    def _flatten(self) -> Sequence[Any]:
        return [self._local()]

    def _widen(self) -> Sequence[Any]:
        return [self._local(), self.pick(("1", "3", "16"))]

    def _specialize(self) -> Sequence[Any]:
        return [self._loop(), self._condition(), *self.pick(((), (), ("z",)))]

    def _unchecked(self) -> Sequence[Any]:
        return [self._loop(self.see.checked)]

    def _unguard(self) -> Sequence[Any]:
        at = self._loop([loop for loop in self.see.loops if any(isinstance(n, Local) for n in self.see.by_name[loop].unique())])
        tiles = [n.name for n in self.see.by_name[at].unique() if isinstance(n, Local)]
        return [at, self.pick(tiles or ["T"])]


def factors(extent: Any) -> list[Any]:
    """What divides an extent, as forms: the factors of a product, small divisors of a number."""
    match extent:
        case Const(value=value):
            return [str(by) for by in range(2, min(value, 16) + 1) if value % by == 0]
        case Op(fn="mul", args=args):
            return [each for a in args for each in (form_of(a), *factors(a))]
    return []


def random_step(rng: random.Random, node: LoopProgram) -> Step:
    """A step for a program."""
    return Drawer(rng, node).step()


def edited(rng: random.Random, steps: Sequence[Step]) -> list[Step]:
    """A schedule as a person may change it: steps left out or taken in another order, other numbers, other names, other words."""
    kept = [tuple([form_of(w) if hasattr(w, "children") else w for w in step]) for step in steps if step != APPLIED]
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        if not kept:
            break
        at = rng.randrange(len(kept))
        match rng.randrange(5):
            case 0:
                del kept[at]
            case 1:
                other = rng.randrange(len(kept))
                kept[at], kept[other] = kept[other], kept[at]
            case 2:
                del kept[at + 1:]
            case _:
                kept[at] = _changed(rng, kept[at], [w for step in kept for w in step[1:] if isinstance(w, str) and not w.isdigit()])
    return kept


def _changed(rng: random.Random, step: Step, words: Sequence[str]) -> Step:
    at = rng.randrange(1, len(step)) if len(step) > 1 else 0
    row = PRIMITIVES[step[0]]
    kind = [*row.words, *row.options, *[row.rest] * len(step)][at - 1] if at else ""
    if isinstance(kind, tuple):
        new: Any = rng.choice(kind)
    elif "count" in kind:
        new = rng.choice(COUNTS)
    else:
        new = rng.choice(words) if words and kind not in ("condition", "extent") else step[at]
    return (*step[:at], new, *step[at + 1:]) if at else step


def stores(node: LoopProgram) -> int:
    """How many statements store: what grows beyond bounds is left alone."""
    return sum(isinstance(n, Setf | Incf) for k in node.kernels for n in k.walk())
