"""Queries and edits of a program by loop name: find a loop, its surroundings and accesses, or replace it."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...core.expr import Const, Expr, Op
from ...core.node import Node, kept
from ...errors import CatenError, did_you_mean, error
from ...loop.affine import canonical
from ...loop.context import Context
from ...loop.statements import Aref, For, If, Incf, Kernel, Local, LoopProgram, Ref, Setf, Stmt, Transpose, Vref

Refusing = Callable[..., CatenError]  # makes an error of a reason and an optional hint


def refusal(code: str, step: str, reason: str, hint: str | None = None) -> CatenError:
    """The error of a refused step, `vectorize ji: (aref C i j) is not contiguous in ji`, with a hint."""
    return error(code, f"{step}: {reason}", hint=hint)


def loops_in(node: Any) -> tuple[For, ...]:
    """Every loop of a program, kernel, statement or list of statements, outermost first, in text order."""
    if isinstance(node, tuple):
        return tuple([loop for part in node for loop in loops_in(part)])
    return (node, *_loops_below(node)) if isinstance(node, For) else _loops_below(node)


@kept
def _loops_below(node: Node) -> tuple[For, ...]:
    found: list[For] = []
    for part in node.kernels if isinstance(node, LoopProgram) else _parts(node):
        if isinstance(part, For):
            found.append(part)
        found += _loops_below(part)
    return tuple(found)


def locals_in(node: Any) -> tuple[Local, ...]:
    """Every local array and scalar that a program, kernel, statement or list of statements declares, in text order."""
    if isinstance(node, tuple):
        return tuple([local for part in node for local in locals_in(part)])
    return (node,) if isinstance(node, Local) else _locals_below(node)


def arrays_for_each_thread(kernel: Kernel) -> list[str]:
    """The local arrays in scratch memory, or of a size that is not constant: in groups of threads, each thread would
    need them for itself."""
    return [n.name for n in locals_in(kernel)
            if n.space == "scratch" or not all(isinstance(e, Const) for e in n.shape)]


@kept
def _locals_below(node: Node) -> tuple[Local, ...]:
    found: list[Local] = []
    for part in _parts(node):
        if isinstance(part, Local):
            found.append(part)
        found += _locals_below(part)
    return tuple(found)


def _parts(node: Node) -> tuple[Node, ...]:
    """The statements directly inside a node. For a program, its clauses: kernels, and arrays that several kernels
    use."""
    match node:
        case For() | Kernel():
            return node.body
        case If():
            return (*node.then, *node.otherwise)
        case LoopProgram():
            return node.clauses
    return ()


def find(program: LoopProgram, name: str, step: str) -> For:
    """The loop called `name`. E501, with the names of all loops, if there is none."""
    known = {loop.name: loop for loop in loops_in(program)}
    if name not in known:
        there = ", ".join(known) if known else "none"
        raise error("E501", f"{step}: there is no loop '{name}'; the loops are: {there}",
                    hint=did_you_mean(name, list(known)))
    return known[name]


def local_array(program: LoopProgram, name: str, refuse: Refusing) -> Local:
    """The local array called `name`. Raises `refuse(reason)`, with the names of all local arrays, if there is none."""
    known = {n.name: n for n in locals_in(program.kernels)}
    if name not in known:
        there = ', '.join(known) or 'none'
        raise refuse(f"there is no local array '{name}'; these are: {there}", did_you_mean(name, list(known)))
    return known[name]


def replaced(program: LoopProgram, old: For, *new: Stmt) -> LoopProgram:
    """Replace a loop by other statements. A condition whose arms become empty is removed."""
    def inside(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        for n, stmt in enumerate(stmts):
            if stmt is old:
                return (*stmts[:n], *new, *stmts[n + 1:])
            if isinstance(stmt, For | If) and old in loops_in(stmt):
                return (*stmts[:n], *around(stmt), *stmts[n + 1:])
        return stmts

    def around(stmt: For | If) -> tuple[Stmt, ...]:
        if isinstance(stmt, For):
            return (stmt.replace(body=inside(stmt.body)),)
        then, otherwise = inside(stmt.then), inside(stmt.otherwise)
        return (If(stmt.cond, then, otherwise),) if then or otherwise else ()

    def in_kernel(clause: Node) -> Node:
        if not isinstance(clause, Kernel) or old not in loops_in(clause):
            return clause
        return clause.replace(body=inside(clause.body))

    return program.map(in_kernel)


def trail(program: LoopProgram, loop: Stmt) -> tuple[tuple[tuple[Stmt, ...], Stmt], ...]:
    """The path from the kernel to `loop`, or another statement that occurs once: pairs of the statements before it in
    its list and the statement itself, outermost first, `loop` last."""
    def go(stmts: tuple[Stmt, ...]) -> tuple[tuple[tuple[Stmt, ...], Stmt], ...] | None:
        for n, stmt in enumerate(stmts):
            if stmt is loop:
                return ((stmts[:n], stmt),)
            if isinstance(stmt, For | If) and (not isinstance(loop, For) or loop in loops_in(stmt)):
                for inner in (stmt.body,) if isinstance(stmt, For) else (stmt.then, stmt.otherwise):
                    if (below := go(inner)) is not None:
                        return ((stmts[:n], stmt), *below)
        return None
    for kernel in program.kernels:
        found = go(kernel.body)
        if found is not None:
            return found
    return ()


def enclosing(program: LoopProgram, loop: For) -> tuple[For, ...]:
    """The loops around `loop`, outermost first."""
    return tuple([stmt for _, stmt in trail(program, loop)[:-1] if isinstance(stmt, For)])


def context_at(program: LoopProgram, loop: Stmt) -> Context:
    """The context just before `loop`, or another statement that occurs once."""
    context = Context.of(program)
    way = trail(program, loop)
    for n, (before, stmt) in enumerate(way):
        context = context.through(before)
        if stmt is loop:
            break
        match stmt:
            case For():
                context = context.inside(stmt)
            case If(then=then):
                context = context.given(stmt.cond, any(s is way[n + 1][1] for s in then))
    return context


def accesses(node: Any, buffer: str) -> list[Ref]:
    """The distinct accesses to `buffer` in a statement or a list of them, in text order."""
    roots: Iterable[Node] = node if isinstance(node, tuple) else (node,)
    found: dict[Ref, None] = {}
    for root in roots:
        for n in root.walk():
            if isinstance(n, Aref | Vref) and n.buffer == buffer:
                found[n] = None
    return list(found)


def writes(node: Any) -> list[Setf | Incf | Transpose]:
    """The stores in a statement or a list of them, in text order."""
    found: list[Setf | Incf | Transpose] = []
    stack: list[Node] = list(node)[::-1] if isinstance(node, tuple) else [node]
    while stack:
        n = stack.pop()
        if isinstance(n, Setf | Incf | Transpose):
            found.append(n)
        stack += [child for child in reversed(n.children) if not isinstance(child, Expr)]
    return found


def reads_memory(expr: Node) -> bool:
    """Does the expression read memory?"""
    return any(isinstance(n, Ref) for n in expr.unique())


def outside_indices(stmts: Iterable[Stmt | Expr]) -> Iterator[Node]:
    """Every distinct node of the statements, without the indices of arrays."""
    stack: list[Node] = list(stmts)
    seen = set(stack)
    while stack:
        node = stack.pop()
        yield node
        for child in () if isinstance(node, Ref) else node.children:
            if child not in seen:
                seen.add(child)
                stack.append(child)


def mentions(node: Any, names: Iterable[str]) -> bool:
    """Does a variable with one of these names occur?"""
    roots = node if isinstance(node, tuple) else (node,)
    return any(not root.variables.isdisjoint(names) for root in roots)


def trip_count(loop: For) -> int | None:
    """The number of iterations of a loop with step 1, if it is constant."""
    extent = canonical(loop.hi - loop.lo)
    return int(extent.value) if isinstance(extent, Const) else None


def use_count(node: Any, buffer: str) -> int:
    """The number of occurrences of an array in a statement or a list of them."""
    roots: Iterable[Node] = node if isinstance(node, tuple) else (node,)
    return sum(1 for root in roots for n in root.walk() if isinstance(n, Aref | Vref) and n.buffer == buffer)


def largest(expr: Expr) -> int | None:
    """A constant upper bound of a loop extent, by its form: (min 6 (- M i)) is at most 6; None if there is none."""
    match expr:
        case Const():
            return int(expr.value)
        case Op(fn="min", args=(a, b)):
            known = [k for k in (largest(a), largest(b)) if k is not None]
            return min(known, default=None)
        case Op(fn="max", args=(a, b)):
            p, q = largest(a), largest(b)
            return None if p is None or q is None else max(p, q)
        case Op(fn="add", args=(a, b)):
            p, q = largest(a), largest(b)
            return None if p is None or q is None else p + q
        case Op(fn="sub", args=(a, Const() as c)):
            p = largest(a)
            return None if p is None else p - int(c.value)
        case Op(fn="floordiv", args=(a, Const() as c)) if c.value > 0:
            p = largest(a)
            return None if p is None else p // int(c.value)
        case Op(fn="mul", args=(a, Const() as c)) | Op(fn="mul", args=(Const() as c, a)) if c.value > 0:
            p = largest(a)
            return None if p is None else p * int(c.value)
    return None
