"""The layout of a call's scratch memory: the offset of each local in it, and its size."""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce

from ..core.dtypes import DTYPES
from ..core.expr import Const, Expr, Op, Var, index
from ..core.node import Node, substitute
from ..core.program import Scalar, Target
from ..errors import CatenError, error
from ..frozen import frozen
from ..loop.affine import Linear, linear
from ..loop.effects import reads, written
from ..loop.empty_calls import idle_sizes_of_kernels
from ..loop.statements import For, If, Kernel, Let, Local, LoopProgram, Ref, Stmt
from .linear_offsets import plus, product, times

ALIGNMENT = 64                           # bytes: a cache line, and the widest vector
USUAL = 256                              # of a size that is not known, to compare arrays
THREADS = Var("ct_threads", "i64")       # what omp_get_max_threads() says at the call
# An offset as a value of which clang does not know how it is computed. Where it does, the formula over the sizes is a
# part of the address of every element, which its loop strength reduction takes apart in every loop: up to two thirds of
# the time to compile a program with many arrays in scratch memory. The address itself stays visible: clang still knows
# what it points into, and that other arrays lie elsewhere.
OFFSET = """static inline int64_t ct_offset(int64_t n)
{
#ifdef __clang__
    __asm__("" : "+r"(n));
#endif
    return n;
}
"""


@frozen
class Slot:
    """A local in scratch memory, in bytes: thread t uses the slice at offset + t · step (step 0: one shared by all)."""

    local: Local
    offset: Expr
    step: Expr


@frozen
class Layout:
    """Scratch memory: `shared` bytes, then `share` bytes for every thread."""

    slots: dict[str, Slot]
    shared: Expr
    share: Expr

    @property
    def total(self) -> Expr:
        """Its size in bytes: a formula over the sizes, and over `ct_threads` where threads have shares of their own."""
        return plus(self.shared, times(self.share, THREADS))


def is_in_scratch(local: Local) -> bool:
    """Is it in scratch memory (and not on the stack or in registers)?"""
    return local.space in ("scratch", "global") or not all(isinstance(e, Const) for e in local.shape)


def layout(program: LoopProgram, parallel: bool | None = None) -> Layout:
    """The offset of every local; those of constant size come first and have constant offsets. `parallel`: do parallel
    loops use threads (default: as the program's target says)?"""
    known = {*program.sizes, *[s.name for s in program.all(Scalar)]}
    try:
        found: list[tuple[Local, Expr, bool]] = [(c, _bytes(c, {}, known), False) for c in program.all(Local)]
        for kernel in program.all(Kernel):
            _collect(kernel.body, {}, False, known, found)
    except CatenError as problem:
        raise CatenError(*[d.at(program.place()) for d in problem.diagnostics]) from None
    if parallel is None:
        parallel = runs_threads(program)
    ends: dict[bool, Counter[Expr]] = {False: Counter(), True: Counter()}
    placed: dict[str, tuple[Local, Expr, bool]] = {}
    places: dict[str, Expr] = {}
    shares = _shared_memory(program, found)
    sizes = {local.name: size for local, size, _ in found}
    for local, _, inside in sorted(found, key=lambda f: not isinstance(f[1], Const)):
        if local.name not in placed:
            own, place = parallel and inside, shares.get(local.name, local.name)
            if place not in places:
                places[place], whole = _total(ends[own]), _rounded(sizes[place])
                ends[own].update({whole: 1} if not isinstance(whole, Const) else {index(1): int(whole.value)})
            placed[local.name] = (local, places[place], own)
    shared, share = _total(ends[False]), _total(ends[True])
    return Layout({name: Slot(local, plus(shared, at) if own else at, share if own else index(0)) for name,
                   (local, at, own) in placed.items()},
                  shared, share)


def _total(sizes: Mapping[Expr, int]) -> Expr:
    """The sum of sizes, each as often as it is needed."""
    total: Expr = index(0)
    for size, count in sizes.items():
        total = plus(total, times(size, index(count)))
    return total


def _shared_memory(program: LoopProgram, found: Sequence[tuple[Local, Expr, bool]]) -> dict[str, str]:
    """For a local, another one that is in the same memory, because it is not needed at the same time and never smaller:
    4 · N floats are at most 16 · N. A local inside a statement of a kernel is needed while
    that runs, one of the whole kernel while the kernel runs, and one between kernels from its first use to its
    last."""
    between = {c.name for c in program.all(Local)}
    target = program.first(Target)
    in_order = target is None or not target.machine.groups       # the statements of a kernel, one after the other
    needed: dict[str, set[int]] = {local.name: set() for local, _, _ in found}
    used = {k.name: {*reads(k), *written(k.body), *_declared(k)} for k in program.kernels}
    inside: dict[tuple[str, str], set[int]] = {}
    for kernel in program.kernels if in_order else ():
        for n, stmt in enumerate(kernel.body):
            for name in _declared(stmt) if isinstance(stmt, For | If) else ():
                inside.setdefault((kernel.name, name), set()).add(n)
    start = 0
    for kernel, arrays, _ in program.runs:
        for name in used[kernel.name]:
            if (actual := arrays.get(name, name)) in needed:
                needed[actual].update([start + n for n in inside.get((kernel.name, name), range(len(kernel.body)))])
        start += len(kernel.body)
    times_of = {name: frozenset(range(min(at), max(at) + 1)) if name in between else frozenset(at)
                for name, at in needed.items() if at}
    forms = {local.name: (linear(size), own) for local, size, own in found}
    shares: dict[str, str] = {}
    taken: dict[str, frozenset[int]] = {}                 # the first local in a place -> when the place is needed
    for name in sorted(times_of, key=lambda name: (-_usual(forms[name][0]), min(times_of[name]))):
        place = next((p for p, used in taken.items()
                      if used.isdisjoint(times_of[name]) and _fits(forms[name], forms[p])), name)
        if place != name:
            shares[name] = place
        taken[place] = taken.get(place, frozenset()) | times_of[name]
    return shares


def _declared(node: Node) -> list[str]:
    return [n.name for n in node.unique() if isinstance(n, Local)]


def _usual(form: Linear) -> int:
    """A size at sizes of some hundreds, to compare it with others."""
    return int(form.constant + sum([k * USUAL ** len(m) for m, k in form.terms.items()]))


def _fits(local: tuple[Linear, bool], place: tuple[Linear, bool]) -> bool:
    """Is there enough memory in a place, whatever the sizes are, of one for each thread or for all, as it is needed?"""
    (need, own), (there, owned) = local, place
    return own == owned and (need == there or (
        need.constant <= there.constant and all(isinstance(a, Var) for m in (*need.terms, *there.terms) for a in m)
        and all(there.terms.get(m, 0) >= k for m, k in need.terms.items())
        and all(k >= 0 for m, k in there.terms.items() if m not in need.terms)))


def scratch_bytes(program: LoopProgram, parallel: bool | None = None) -> Expr:
    """The scratch memory of a call in bytes: a formula over the sizes, and over `ct_threads` where threads have private
    slices; 0 where the call does nothing."""
    total = layout(program, parallel).total
    if isinstance(total, Const):
        return total
    idle = [Op("eq", (Var(n, "i64"), index(0))) for n in idle_sizes_of_kernels(program)]
    return Op("where", (reduce(lambda a, b: Op("or", (a, b)), idle), index(0), total)) if idle else total


def needed(program: LoopProgram) -> Expr | bool:
    """Does a call use scratch memory? A condition over the sizes and scalars where only some calls do."""
    if program.all(Local):
        return True
    known = {*program.sizes, *[s.name for s in program.all(Scalar)]}
    return _either([_needed(kernel.body, known) for kernel in program.all(Kernel)])


def _needed(body: tuple[Stmt, ...], known: set[str]) -> Expr | bool:
    parts: list[Expr | bool] = []
    for stmt in body:
        if isinstance(stmt, If) and stmt.cond.variables <= known and not any(isinstance(n, Ref)
                                                                             for n in stmt.cond.unique()):
            then, otherwise = _needed(stmt.then, known), _needed(stmt.otherwise, known)
            if then == otherwise:
                parts.append(then)
            else:
                parts += [_both(stmt.cond, then), _both(Op("not", (stmt.cond,)), otherwise)]
        else:
            parts.append(any(isinstance(n, Local) and is_in_scratch(n) for n in stmt.unique()))
    return _either(parts)


def _both(cond: Expr, part: Expr | bool) -> Expr | bool:
    return part if part is False else cond if part is True else Op("and", (cond, part))


def _either(parts: Sequence[Expr | bool]) -> Expr | bool:
    if any(part is True for part in parts):
        return True
    conds = [part for part in dict.fromkeys(parts) if isinstance(part, Expr)]
    return reduce(lambda a, b: Op("or", (a, b)), conds) if conds else False


def runs_threads(program: LoopProgram) -> bool:
    """Was the program made for a runtime with threads switched on (`--config OMP=1`)?"""
    target = program.first(Target)
    return target is not None and any(c.key.upper() == "OMP" and c.value.lower() in ("1", "true", "on", "yes")
                                      for c in target.config)


def _collect(body: tuple[Stmt, ...], lets: dict[Expr, Expr], inside: bool, known: set[str],
             found: list[tuple[Local, Expr, bool]]) -> None:
    for stmt in body:
        match stmt:
            case Let(name=name, type=dtype, value=value):
                lets = lets | {Var(name, dtype): substitute(value, lets)}
            case Local() if is_in_scratch(stmt):
                found.append((stmt, _bytes(stmt, lets, known), inside))
            case For(body=inner, mark=mark):
                _collect(inner, lets, inside or mark == "parallel", known, found)
            case If(then=then, otherwise=otherwise):
                _collect(then, lets, inside, known, found)
                _collect(otherwise, lets, inside, known, found)


def _bytes(local: Local, lets: dict[Expr, Expr], known: set[str]) -> Expr:
    """Its size."""
    shape = tuple([substitute(e, lets) for e in local.shape])
    for extent in shape:
        unknown = sorted(n for n in extent.variables if n not in known)
        if unknown or any(c.head in ("aref", "vref") for c in extent.unique()):
            on = " and ".join(unknown) or "an array"
            raise error("E615", f"the extent of the local array '{local.name}' depends on {on}, which is not known at "
                                f"entry",
                        hint="give it an extent over sizes that is large enough for every iteration")
    return times(product(shape), index(DTYPES[local.type].bytes))


def _rounded(size: Expr) -> Expr:
    """A size as whole cache lines."""
    if isinstance(size, Const):
        return index(-(-size.value // ALIGNMENT) * ALIGNMENT)
    return times((size + (ALIGNMENT - 1)) // ALIGNMENT, index(ALIGNMENT))
