"""Programs in index notation, and the ways to write each as a spec: in NumPy, in loops, with other names, sizes, orders of
axes and of statements.

    m[i] = max j: X[i,j]
    E[i,j] = exp(X[i,j] - m[i])

Names with a capital letter that a line defines are outputs; names that no line defines are inputs. `Y0` is what the
output `Y` holds before: lines read it at any index before the one that defines `Y`, which reads it at its own index. An
input in the index of another one, `X[K[i],j]`, is an array of indices: its first axis is as long as that of `X`.
"""
from __future__ import annotations

import ast
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from caten.frontend.spec_files import SpecText

OPERATORS: dict[type[ast.AST], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Lt: "<", ast.LtE: "<="}
FUNCTIONS = {"where": ("np.where", "where"), "maximum": ("np.maximum", "max"), "minimum": ("np.minimum", "min"), "abs": ("np.abs", "abs"), "exp": ("np.exp", "exp"),
             "sqrt": ("np.sqrt", "sqrt"), "tanh": ("np.tanh", "tanh"), "log": ("np.log", "log"), "sin": ("np.sin", "sin")}
STARTS = {"sum": ("0.0", "incf"), "max": ("(- inf)", "maxcf"), "min": ("inf", "mincf")}
ACCUMULATIONS = {"sum": ("0.0", "{} += {}"), "max": ("-np.inf", "{0} = max({0}, {1})"), "min": ("np.inf", "{0} = min({0}, {1})")}      # in Python


@dataclass(frozen=True)
class Line:
    """`target[axes] = fn over: expr`; without a reduction `fn` is empty."""

    target: str
    axes: tuple[str, ...]
    fn: str
    over: tuple[str, ...]
    expr: ast.expr

    @property
    def reads(self) -> list[ast.Subscript]:
        return [n for n in ast.walk(self.expr) if isinstance(n, ast.Subscript)]


Program = tuple[Line, ...]


def program(text: str) -> Program:
    """The lines of a text."""
    lines = []
    for line in text.strip().splitlines():
        target, _, value = line.partition(" = ")
        reduction, _, expr = value.rpartition(": ")
        fn, *over = reduction.split() or [""]
        name, _, axes = target.rstrip("]").partition("[")
        lines.append(Line(name, tuple(filter(None, axes.split(","))), fn, tuple(over), ast.parse(expr, mode="eval").body))
    return tuple(lines)


def index_of(read: ast.Subscript) -> tuple[str, ...]:
    """The indices of a read, as text."""
    parts = read.slice.elts if isinstance(read.slice, ast.Tuple) else [read.slice]
    return tuple([ast.unparse(p) for p in parts])


def name_of(read: ast.Subscript) -> str:
    assert isinstance(read.value, ast.Name)
    return read.value.id


def axes_of(read: ast.Subscript) -> tuple[str, ...]:
    """The axes at which an array is read; of an index that is read, its axis."""
    parts = read.slice.elts if isinstance(read.slice, ast.Tuple) else [read.slice]
    return tuple([ast.unparse(p.slice if isinstance(p, ast.Subscript) else p) for p in parts])


def inputs_of(lines: Program) -> dict[str, tuple[str, ...]]:
    """The arrays that no line defines, with the axes of their first read, or those of the output that they become."""
    made = {line.target: line.axes for line in lines}
    return {name_of(r): made.get(replaced_by(name_of(r)), axes_of(r)) for line in reversed(lines) for r in reversed(line.reads) if name_of(r) not in made}


def replaced_by(name: str) -> str:
    """The output whose contents before are called this; none: an empty name."""
    return name[:-1] if name.endswith("0") else ""


def in_place(lines: Program) -> set[str]:
    """The outputs that hold something before."""
    return {replaced_by(name) for name in inputs_of(lines)} & {x.target for x in lines}


def indices_of(lines: Program) -> set[str]:
    """The arrays of indices."""
    return {name_of(n) for x in lines for r in x.reads for n in ast.walk(r.slice) if isinstance(n, ast.Subscript)}


# -- the same program in other words ------------------------------------------------------------------------------------


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str], orders: Mapping[str, Sequence[int]]) -> None:
        self.names, self.orders = names, orders

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        index = index_of(node)
        order = self.orders.get(name_of(node), range(len(index)))
        text = ", ".join([ast.unparse(self.visit(ast.parse(index[n], mode="eval").body)) for n in order])
        return ast.parse(f"{self.names.get(name_of(node), name_of(node))}[{text}]", mode="eval").body

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Name(self.names.get(node.id, node.id))


def rewritten(lines: Program, names: Mapping[str, str], orders: Mapping[str, Sequence[int]]) -> Program:
    """The program with other names of arrays and axes, and other orders of the axes of arrays."""
    change = _Renamed(names, orders)
    return tuple([Line(names.get(x.target, x.target), tuple([names.get(x.axes[n], x.axes[n]) for n in orders.get(x.target, range(len(x.axes)))]), x.fn,
                       tuple([names.get(a, a) for a in x.over]), change.visit(ast.parse(ast.unparse(x.expr), mode="eval").body)) for x in lines])


def renamed(lines: Program, rng: random.Random) -> Program:
    """Other names for arrays and axes. Parameters stay in their order, which is that of their names."""
    axes = sorted({a for x in lines for a in (*x.axes, *x.over)})
    letters = rng.sample("abcdghklmopqrstuvwxyz", len(axes))
    changed = in_place(lines)
    arrays = sorted({x.target for x in lines} | {n for n in inputs_of(lines) if replaced_by(n) not in changed})
    new = sorted(rng.sample([f"{a}{b}" for a in "BCDFGH" for b in "uvwxyz"], len(arrays)))
    outputs = {x.target for x in lines if x.target[0].isupper()}
    names = {a: n if a in outputs or a in inputs_of(lines) else n.lower() for a, n in zip(arrays, new, strict=True)}
    return rewritten(lines, dict(zip(axes, letters, strict=True)) | names | {f"{y}0": f"{names[y]}0" for y in changed}, {})


def permuted(lines: Program, rng: random.Random) -> Program:
    """All arrays with their axes in the order that a permutation of all axes gives."""
    axes = sorted({a for x in lines for a in (*x.axes, *x.over)})
    rank = {a: n for n, a in enumerate(rng.sample(axes, len(axes)))}
    shapes = {x.target: x.axes for x in lines} | inputs_of(lines)
    return rewritten(lines, {}, {name: sorted(range(len(own)), key=lambda n, own=own: rank[own[n]]) for name, own in shapes.items()})


def reordered(lines: Program, rng: random.Random) -> Program:
    """Another order of statements, each after those that it reads, and after those that read what it replaces."""
    left, done = list(lines), list[Line]()
    while left:
        ready = [x for x in left if not {name_of(r) for r in x.reads} & {y.target for y in left}
                 and not any(f"{x.target}0" in {name_of(r) for r in y.reads} for y in left if y is not x)]
        chosen = rng.choice(ready)
        left.remove(chosen)
        done.append(chosen)
    return tuple(done)


class _Swapped(ast.NodeTransformer):
    """Exchanges operands of commutative operators."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        left, right = self.visit(node.left), self.visit(node.right)
        swaps = isinstance(node.op, ast.Add | ast.Mult) and self.rng.random() < 0.5
        return ast.BinOp(right, node.op, left) if swaps else ast.BinOp(left, node.op, right)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        args = [self.visit(a) for a in node.args]
        swaps = ast.unparse(node.func) in ("maximum", "minimum") and self.rng.random() < 0.5
        return ast.Call(node.func, args[::-1] if swaps else args, [])


def swapped(lines: Program, rng: random.Random) -> Program:
    """Operands of sums, products, maxima and minima in the other order."""
    change = _Swapped(rng)
    return tuple([replace(x, expr=change.visit(ast.parse(ast.unparse(x.expr), mode="eval").body)) for x in lines])


class _Split(ast.NodeTransformer):
    """Takes an operand out."""

    def __init__(self, rng: random.Random, name: str) -> None:
        self.rng, self.name, self.taken = rng, name, list[ast.expr]()

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        if not self.taken and self.rng.random() < 0.7 and not isinstance(node.left, ast.Constant):
            self.taken.append(node.left)
            return ast.BinOp(ast.Name(self.name), node.op, node.right)
        return node


# -- spelling -------------------------------------------------------------------------------------------------------------


def spelled_in_numpy(lines: Program, sizes: Mapping[str, str]) -> str:
    """Statements over whole arrays."""
    before = {f"{y}0": y for y in in_place(lines)}
    return "\n".join([line_in_numpy(x, sizes, before) for x in lines])


def line_in_numpy(x: Line, sizes: Mapping[str, str], before: Mapping[str, str]) -> str:
    """One statement over whole arrays. `before`: outputs by the names of what they hold before."""
    space = (*x.axes, *x.over)

    def aligned(read: ast.Subscript) -> str:
        index, at = axes_of(read), index_of(read)
        order = sorted(range(len(index)), key=lambda n: space.index(index[n]))
        text = before.get(name_of(read), name_of(read)) + (f"[{at[0].partition('[')[0]}]" if at[0] != index[0] else "")
        text = text if order == list(range(len(index))) else f"{text}.transpose({', '.join(map(str, order))})"
        present = [":" if a in index else "None" for a in space]
        return text if present == [":"] * len(space) else f"{text}[{', '.join(present)}]"

    def counted(axis: str) -> str:
        return f"np.arange({sizes[axis]})[{', '.join([':' if a == axis else 'None' for a in space])}]"
    text = in_numpy(x.expr, aligned, counted)
    if x.fn:
        at = range(len(x.axes), len(space))
        text = f"np.{x.fn}({text}, axis={at[0] if len(at) == 1 else tuple(at)})"
    return f"{x.target} = {text}"


def spelled_in_python(lines: Program, sizes: Mapping[str, str], rng: random.Random) -> str:
    """Loops over elements in Python, and some lines over whole arrays."""
    lines, made = with_names_of_outputs(lines), list[str]()
    for x in lines:
        if rng.random() < 0.3:
            made.append(line_in_numpy(x, sizes, {}))
            continue
        if not x.target[0].isupper():
            made.append(f"{x.target} = np.zeros(({''.join([f'{sizes[a]}, ' for a in x.axes])}), np.float32)")
        e, target, order = in_numpy(x.expr, ast.unparse, str), f"{x.target}[{', '.join(x.axes)}]", rng.sample(x.axes, len(x.axes))
        if not x.fn:
            made += loops_in_python(order, sizes, [f"{target} = {e}"])
            continue
        start, step = ACCUMULATIONS[x.fn]
        if rng.random() < 0.5:
            total = loops_in_python(x.over, sizes, [step.format("total", e)])
            made += loops_in_python(order, sizes, [f"total = {start}", *total, f"{target} = total"])
        else:
            made += loops_in_python(order, sizes, [f"{target} = {start}"])
            made += loops_in_python(rng.sample((*x.axes, *x.over), len(x.axes) + len(x.over)), sizes, [step.format(target, e)])
    return "\n".join(made)


def loops_in_python(axes: Sequence[str], sizes: Mapping[str, str], body: Sequence[str]) -> list[str]:
    """The lines of nested loops."""
    for a in reversed(axes):
        body = [f"for {a} in range({sizes[a]}):", *[f"    {line}" for line in body]]
    return list(body)


def in_numpy(e: ast.expr, read: Callable[[ast.Subscript], str], axis: Callable[[str], str]) -> str:
    match e:
        case ast.Subscript():
            return read(e)
        case ast.Name(name):
            return axis(name)
        case ast.BinOp(left, op, right) | ast.Compare(left, [op], [right]):
            return f"({in_numpy(left, read, axis)} {OPERATORS[type(op)]} {in_numpy(right, read, axis)})"
        case ast.UnaryOp(ast.USub(), operand):
            return f"(-{in_numpy(operand, read, axis)})"
        case ast.Call(ast.Name(fn), args):
            return f"{FUNCTIONS[fn][0]}({', '.join([in_numpy(a, read, axis) for a in args])})"
    return ast.unparse(e)


def in_lisp(e: ast.expr, scalars: frozenset[str]) -> str:
    match e:
        case ast.Subscript():
            if name_of(e) in scalars:
                return name_of(e)
            return f"(aref {name_of(e)} {' '.join([in_lisp(ast.parse(i, mode='eval').body, scalars) for i in index_of(e)])})"
        case ast.BinOp(left, op, right) | ast.Compare(left, [op], [right]):
            return f"({OPERATORS[type(op)]} {in_lisp(left, scalars)} {in_lisp(right, scalars)})"
        case ast.UnaryOp(ast.USub(), operand):
            return f"(- {in_lisp(operand, scalars)})"
        case ast.Call(ast.Name(fn), args):
            return f"({FUNCTIONS[fn][1]} {' '.join([in_lisp(a, scalars) for a in args])})"
    return ast.unparse(e)


def with_names_of_outputs(lines: Program) -> Program:
    """The program in which what an output holds before has its name: statements read it before they change it."""
    return rewritten(lines, {f"{y}0": y for y in in_place(lines)}, {})


class Loops:
    """The program in loops. `sizes`: the extents of axes. `scalars`: reductions have an accumulator for each element.
    `lets`: some operands have a name. `shuffled`: the loops of a nest are in any order."""

    def __init__(self, lines: Program, sizes: Mapping[str, str], rng: random.Random, scalars: bool = False, lets: bool = False, shuffled: bool = False) -> None:
        self.lines = with_names_of_outputs(lines)
        self.sizes, self.rng, self.scalars, self.lets, self.shuffled = sizes, rng, scalars, lets, shuffled
        self.numbers = count(1)

    def text(self) -> str:
        """One nest for each line, over local arrays."""
        outputs = {x.target for x in self.lines if x.target[0].isupper()}
        arrays = [f"(array {x.target} float ({' '.join([self.sizes[a] for a in x.axes])}))" for x in self.lines if x.target not in outputs]
        return "\n".join([*arrays, *[self.nest(x, x.axes, frozenset()) for x in self.lines]])

    def around(self, axis: str) -> str:
        """One loop over an axis that all lines have, around all nests; what has no other axis is a scalar."""
        outputs = {x.target for x in self.lines if x.target[0].isupper()}
        scalars = frozenset([x.target for x in self.lines if x.axes == (axis,) and x.target not in outputs])
        arrays = [f"(array {x.target} float ({' '.join([self.sizes[a] for a in x.axes])}))" for x in self.lines if x.target not in outputs | scalars]
        inner = [self.nest(x, tuple([a for a in x.axes if a != axis]), scalars) for x in self.lines]
        return "\n".join([*arrays, self.loops((axis,), "\n".join(inner))])

    def loops(self, axes: Sequence[str], body: str) -> str:
        for a in reversed(axes):
            body = f"(dotimes ({a} {self.sizes[a]}) {body})"
        return body

    def nest(self, x: Line, axes: tuple[str, ...], scalars: frozenset[str]) -> str:
        target = x.target if x.target in scalars else f"(aref {x.target} {' '.join(x.axes)})"
        put = "set" if x.target in scalars else "setf"
        order = tuple(self.rng.sample(axes, len(axes))) if self.shuffled else axes
        if not x.fn:
            return self.loops(order, self.under(x.expr, scalars, lambda e: f"({put} {target} {e})", self.lets and put == "setf"))
        start, step = STARTS[x.fn]
        if self.scalars:
            own = f"acc{next(self.numbers)}"
            total = self.loops(x.over, self.under(x.expr, scalars, lambda e: f"({step} {own} {e})", self.lets))
            return self.loops(order, f"(set {own} {start}) {total} ({put} {target} {own})")
        every = (*axes, *x.over)
        every = tuple(self.rng.sample(every, len(every))) if self.shuffled else every
        return f"{self.loops(order, f'({put} {target} {start})')}\n{self.loops(every, self.under(x.expr, scalars, lambda e: f'({step} {target} {e})', self.lets))}"

    def under(self, e: ast.expr, scalars: frozenset[str], use: Callable[[str], str], lets: bool) -> str:
        """A use of an expression, maybe with a name for an operand."""
        name = f"part{next(self.numbers)}"
        split = _Split(self.rng, name)
        rest = split.visit(ast.parse(ast.unparse(e), mode="eval").body) if lets else e
        if not split.taken:
            return use(in_lisp(e, scalars))
        return f"(let (({name} {in_lisp(split.taken[0], scalars)})) {use(in_lisp(rest, scalars))})"


def spec(lines: Program, sizes: Mapping[str, str], code: str, lang: str, name: str = "Family") -> SpecText:
    """A spec with the signature of the program."""
    before, indices = {f"{y}0": y for y in in_place(lines)}, indices_of(lines)

    def declared(name: str, axes: Sequence[str]) -> str:
        dtype = "int" if name in indices else "float"
        return f'"{before.get(name, name)}{{{dtype}}}[{" ".join([sizes[a] for a in axes])}]"'
    inputs = ", ".join([declared(n, axes) for n, axes in sorted(inputs_of(lines).items())])
    outputs = ", ".join([f'"{x.target}"' if x.target in before.values() else declared(x.target, x.axes)
                         for x in sorted(lines, key=lambda x: x.target) if x.target[0].isupper()])
    return SpecText("family.toml", f'[composite]\nname = "{name}"\ninputs = [{inputs}]\noutputs = [{outputs}]\n'
                                   f'[implementation]\nlang = "{lang}"\ncode = """\n{code}\n"""\n')


def axes_in(lines: Program) -> list[str]:
    """The names of all axes."""
    return sorted({a for x in lines for a in (*x.axes, *x.over)})


@dataclass(frozen=True)
class Sizes:
    """How axes get their extents. `square`: all have the same one. `numbers`: constant extents are drawn from these; by
    default they are near the one that counts for a size."""

    square: bool = False
    numbers: range = range(700, 1100)

    def of(self, lines: Program, rng: random.Random | None = None) -> dict[str, str]:
        """The extent of each axis: a size, or a number if there is a generator."""
        axes = axes_in(lines)
        drawn = [f"N{a}" for a in axes] if rng is None else [str(rng.choice(self.numbers)) for _ in axes]
        return dict(zip(axes, [drawn[0]] * len(axes) if self.square else drawn, strict=True))


def common_axis(lines: Program) -> str | None:
    """An axis of all lines at which each reads the others, and what it changes, at its own index."""
    lines = with_names_of_outputs(lines)
    axes = {x.target: x.axes for x in lines}
    for a in lines[0].axes:
        if all(a in x.axes for x in lines) and all(index_of(r)[axes[name_of(r)].index(a)] == a for x in lines for r in x.reads if name_of(r) in axes):
            return a
    return None


def written(lines: Program, sizes: Mapping[str, str], form: str, rng: random.Random, name: str = "Family") -> tuple[list[str], SpecText]:
    """The program in NumPy, in loops of Python or Lisp, or with a loop around all lines, where that is possible. The other choices are drawn: what they are, and the spec."""
    if form in ("numpy", "python"):
        code = spelled_in_numpy(lines, sizes) if form == "numpy" else spelled_in_python(lines, sizes, rng)
        return [form], spec(lines, sizes, code, "python", name)
    loops = Loops(lines, sizes, rng, *[rng.random() < 0.5 for _ in range(3)])
    axis = common_axis(lines) if form == "around" else None
    told = ["loops" if axis is None else "around", *[w for w in ("scalars", "lets", "shuffled") if getattr(loops, w)]]
    return told, spec(lines, sizes, loops.text() if axis is None else loops.around(axis), "lisp", name)


def variants(text: str, number: int, seed: int = 0, sizes: Sizes = Sizes(), name: str = "Family") -> list[tuple[str, SpecText]]:
    """The program as it is in NumPy, then other ways to write it."""
    original = program(text)
    found = [("numpy", spec(original, sizes.of(original), spelled_in_numpy(original, sizes.of(original)), "python", name))]
    for n in range(number - 1):
        rng = random.Random(f"{seed} {n} {text}")
        lines, told = original, []
        for what, change in (("renamed", renamed), ("permuted", permuted), ("reordered", reordered), ("swapped", swapped)):
            if rng.random() < 0.5 and not (what == "permuted" and sizes.square):
                lines = change(lines, rng)
                told.append(what)
        numbers = rng.random() < 0.25
        extents = sizes.of(lines, rng if numbers else None)
        told += ["numbers"] if numbers else []
        how, made = written(lines, extents, rng.choice(("numpy", "python", "loops", "loops", "around")), rng, name)
        found.append((" ".join([how[0], *told, *how[1:]]), made))
    return found
