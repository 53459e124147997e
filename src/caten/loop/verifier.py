"""The verifier of the op and loop levels: the invariants of every program after every pass.

Names are unique and bound, ranks and element types agree, accesses are in bounds, marks are legal, vectors have
constant extents. A failure is a compiler bug, not the user's: the E48x diagnostics name the statement.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from typing import Any, TypeVar

from ..core.dtypes import DTYPES, is_integer, is_packed
from ..core.expr import Bitcast, Cast, Const, Conversion, Expr, Op, Var, index
from ..core.monoids import is_monoid
from ..core.node import Node, kept
from ..core.program import Buffer, Ensure, Param, Program, Unchecked
from ..core.scalars import OPERATORS
from ..errors import CatenError, error
from .accesses import Access, accesses, is_inside
from .affine import Linear, constant, linear, text_of
from .context import Context
from .dependence import carried_dependence
from .effects import reads, written
from .gpu_verifier import data_race, structure_fault
from .renaming import array_kind, shifted_arrays
from .simplify import statement_field
from .statements import (
    ADDRESSED,
    MARKS,
    SPACES,
    STREAM,
    WRITE,
    Address,
    Aref,
    Assume,
    ExternCall,
    Fail,
    Fold,
    For,
    If,
    Incf,
    Kernel,
    Lanes,
    Let,
    Local,
    Prefetch,
    Prefix,
    Ramp,
    Repeat,
    Setf,
    Shuffle,
    Splat,
    Stmt,
    Transpose,
    Vref,
    statements_in,
)

SHARED_NODES = 256                  # of a value that may share parts: written out, it may have no end
SHARED_TIMES = 8                    # as large written out as it is: then it shares many

Scope = Mapping[str, Node]          # what declares each visible name
Named = Var | Aref | Vref | Address

P = TypeVar("P", bound=Program)


def verify(program: Program) -> None:
    """Raise CatenError E48x unless the program is well formed and every access is proven in bounds."""
    arrays_are_sound(program)
    _names_are_unique(program)
    scope: dict[str, Node] = {}
    for param in program.all(Param):
        if hasattr(param, "declares"):
            scope[param.declares()[0]] = param
    context = Context.of(program)
    checked = program.first(Unchecked) is None
    for clause in program.clauses:
        if isinstance(clause, Local):
            _statement(clause, scope, context, checked)
            scope[clause.name] = clause
    for clause in program.clauses:
        if field := statement_field(clause):
            _names_are_known(clause)
            if isinstance(clause, Kernel) and (wrong := structure_fault(clause)) is not None:
                raise _fault("E484", *wrong)
            if isinstance(clause, Kernel) and not is_call_alone(clause.body):
                raise _fault("E484", clause, "a call of a C function is not a kernel of its own")
            _statements(getattr(clause, field), scope, context, checked)
    before: dict[str, Kernel] = {}
    for clause in program.clauses:
        if isinstance(clause, Kernel):
            before[clause.name] = clause
        elif isinstance(clause, Repeat):
            _repeat(clause, before, scope)
        if isinstance(clause, Kernel | Repeat) and clause.starts:
            _starts(clause, before, scope, context)
    for kernel in before.values() if checked else ():
        _stays_inside(kernel, program, scope, context)


def _repeat(again: Repeat, kernels: Mapping[str, Kernel], scope: Scope) -> None:
    """A kernel runs again on arrays of the same kinds, those that it writes distinct from all others."""
    kernel = kernels.get(again.kernel)
    if kernel is None:
        raise _fault("E480", again, f"there is no kernel '{again.kernel}' before this")
    new = dict(again.arrays)
    own = [name for name in dict.fromkeys([*reads(kernel), *written(kernel.body)]) if name in scope]
    for old in new:
        if old not in own:
            raise _fault("E480", again, f"the kernel '{again.kernel}' uses no array '{old}'")
    for name in own:
        actual = new.get(name, name)
        mine, other = _declaration(name, scope, again), _declaration(actual, scope, again)
        if array_kind(mine) != array_kind(other):
            raise _fault("E482", again, f"'{actual}' is no array like '{name}': its type, shape or order differs")
        if name in written(kernel.body):
            _is_written(actual, scope, again)
            if any(new.get(each, each) == actual for each in own if each != name):
                raise _fault("E484", again, f"the kernel writes '{actual}', and uses it as another array, too")


def _starts(run: Kernel | Repeat, kernels: Mapping[str, Kernel], scope: Scope, context: Context) -> None:
    """Where arrays begin in a run is inside of them."""
    kernel = kernels[run.kernel if isinstance(run, Repeat) else run.name]
    own = reads(kernel) | written(kernel.body)
    seen: set[str] = set()
    for start in run.starts:
        array = _declaration(start.array, scope, run) if start.array in own else None
        if not isinstance(array, Buffer | Local) or start.array in seen:
            raise _fault("E480", run, f"'{start.array}' is no array of the kernel '{kernel.name}', or begins twice")
        seen.add(start.array)
        rank = len(array.axes if isinstance(array, Buffer) else array.shape)
        if len(start.index) != rank or is_packed(array.type):
            raise _fault("E487", run, f"{text_of(start)}: '{start.array}' has {rank} axes" if len(start.index) != rank
                         else f"{text_of(start)}: several elements of '{start.array}' have one address")
        for e in start.index:
            _formula(e, scope, run)
            if not context.proves(e >= index(0)):
                raise _fault("E483", run, f"{text_of(e)} is not shown to be 0 or more")


def _stays_inside(kernel: Kernel, program: Program, scope: Scope, context: Context) -> None:
    """Accesses of a kernel are in bounds where its arrays begin further on: where they begin at numbers, with the
    greatest of these along each axis, for an index that is in bounds without them is not below 0 with them."""
    runs = [c for c in program.clauses if (isinstance(c, Kernel) and c is kernel)
            or (isinstance(c, Repeat) and c.kernel == kernel.name)]
    every = list(dict.fromkeys([tuple([(s.array, s.index) for s in run.starts]) for run in runs if run.starts]))
    if all(isinstance(e, Const) for starts in every for _, at in starts for e in at):
        last: dict[str, tuple[Expr, ...]] = {}
        for name, at in [start for starts in every for start in starts]:
            last[name] = tuple([max(a, b, key=_number) for a, b in zip(at, last.get(name, at), strict=True)])
        every = [tuple(last.items())] if last else []
    for starts in every:
        _bounds(shifted_arrays(kernel.body, dict(starts)), scope, context)


def _number(e: Expr) -> int:
    assert isinstance(e, Const)
    return int(e.value)


def _bounds(stmts: Iterable[Stmt], scope: Scope, context: Context) -> None:
    """All accesses are in bounds."""
    visible = dict(scope)
    for stmt in stmts:
        if not context.unreachable:
            _accesses_are_in_bounds(stmt, visible, context)
        match stmt:
            case For(name, body=body):
                _bounds(body, {**visible, name: stmt}, context.inside(stmt))
            case If(cond, then, otherwise):
                _bounds(then, visible, context.given(cond))
                _bounds(otherwise, visible, context.given(cond, False))
            case Let(name) | Local(name):
                visible[name] = stmt
        context = context.after(stmt)


def is_call_alone(body: tuple[Stmt, ...]) -> bool:
    """True if the statements contain no call of a C function, or are one, perhaps under conditions."""
    if not any(isinstance(n, ExternCall) for n in statements_in(body)):
        return True
    match body:
        case (ExternCall(),):
            return True
        case (If(_, then, ()),):
            return is_call_alone(then)
    return False


def where_shown(before: P, made: P) -> P:
    """`made`, or `before` if the verifier cannot prove the accesses of `made` although its checks imply them."""
    try:
        verify(made)
    except CatenError as fault:
        if rests_on_checks(fault, before):
            return before
    return made


def rests_on_checks(fault: CatenError, program: Program) -> bool:
    """True if the fault is only an access that is not shown in bounds, in a program with run-time checks."""
    return all(d.code == "E483" for d in fault.diagnostics) and any(
        isinstance(n, Fail) for clause in program.clauses if statement_field(clause) for n in clause.unique())


def arrays_are_sound(program: Program) -> None:
    """Raise CatenError E480 or E482 unless every parameter has an element type, every array has as many axes in its
    order and strides as in its shape, and every formula of a parameter or fact is over sizes and scalars."""
    scope = {p.declares()[0]: p for p in program.all(Param) if hasattr(p, "declares")}
    for clause in program.clauses:
        if isinstance(clause, Param | Ensure):
            for formula in clause.children:
                if isinstance(formula, Expr):
                    _formula(formula, scope, clause)
    for param in program.all(Param):
        if hasattr(param, "type") and param.type not in DTYPES:
            raise _fault("E482", param, f"'{param.type}' is no element type")
        if isinstance(param, Buffer):
            if sorted(param.order) != list(range(len(param.shape))) or len(param.strides) not in (0, len(param.shape)):
                raise _fault("E482", param, "the order or the strides do not fit the shape")
            if param.seen and (param.strides or count_of(param.seen) != count_of(param.shape)):
                raise _fault("E482", param, "kernels see as many elements as there are, of a dense array")
            if param.access not in ("in", "out", "inout"):
                raise _fault("E482", param, f"'{param.access}' is not in, out or inout")


def count_of(shape: tuple[Expr, ...]) -> Linear:
    """The number of elements of a shape."""
    return reduce(Linear.times, map(linear, shape), constant(1))


def _formula(formula: Expr, scope: Scope, clause: Node) -> None:
    _expression(formula, scope, clause)
    for node in formula.unique():
        if not isinstance(node, Var | Const | Op | Conversion):
            raise _fault("E482", clause, f"{text_of(node)} is not computed from sizes and scalars")


def _names_are_unique(program: Program) -> None:
    seen: set[str] = set()
    for clause in program.clauses:
        if not isinstance(clause, Param | Stmt) and not statement_field(clause):
            continue
        for node in (clause, *statements_in([c for c in clause.children if isinstance(c, Stmt)])):
            if hasattr(node, "declares"):
                name = node.declares()[0]
                if name in seen:
                    raise _fault("E480", node, f"the name '{name}' is declared twice")
                seen.add(name)


def _names_are_known(clause: Node) -> None:
    """Check names and types first: the analysis of a loop's effect on its locals comes before the check of its body."""
    if _all_have_types(clause):
        return
    for node in clause.unique():
        if isinstance(node, Var | Aref | Vref | Address) and not node.type:
            user = next(s for s in clause.unique()
                        if isinstance(s, Stmt) and any(isinstance(c, Expr) and node in c.unique() for c in s.children))
            raise _fault("E480", user,
                         f"'{node.name if isinstance(node, Var) else node.buffer}' is not declared before this use")


@kept
def _all_have_types(node: Node) -> bool:
    """Does everything in a clause or statement that has a name have a type? Kept: most of it is as it was before the
    last step."""
    return all(all(name.type for name in _named(part)) if isinstance(part, Expr) else _all_have_types(part)
               for part in node.children)


def _named(expr: Expr) -> tuple[Named, ...]:
    """What refers to a declaration, operands before what uses them."""
    return (*_named_inside(expr), expr) if isinstance(expr, Named) else _named_inside(expr)


@kept
def _named_inside(expr: Expr) -> tuple[Named, ...]:
    return tuple([node for node in reversed(list(expr.unique())) if isinstance(node, Named) and node is not expr])


def _statements(stmts: Iterable[Stmt], scope: Scope, context: Context, checked: bool) -> None:
    visible = dict(scope)
    for stmt in stmts:
        _statement(stmt, visible, context, checked)
        match stmt:
            case For(name, body=body):
                _statements(body, {**visible, name: stmt}, context.inside(stmt), checked)
                if stmt.mark in ("parallel", "grid") and (shared := carried_dependence(stmt, context)) is not None:
                    raise _fault("E484", stmt, f"the {stmt.mark} loop carries a dependence: {shared}")
                if stmt.mark == "block" and (shared := data_race(stmt, context)) is not None:
                    raise _fault("E484", stmt, f"no barrier separates two threads: {shared}")
            case If(cond, then, otherwise):
                _statements(then, visible, context.given(cond), checked)
                _statements(otherwise, visible, context.given(cond, False), checked)
            case Let(name) | Local(name):
                visible[name] = stmt
        context = context.after(stmt)


def _statement(stmt: Stmt, scope: Scope, context: Context, checked: bool) -> None:
    """Check the statement itself, not those inside it."""
    for part in stmt.children:
        if isinstance(part, Expr):
            _expression(part, scope, stmt)
    match stmt:
        case For(_, lo, hi, step, mark):
            if mark not in MARKS:
                raise _fault("E484", stmt, f"'{mark}' is not a mark; the marks are {', '.join(MARKS)}")
            if isinstance(step, Const) and step.value == 0:
                raise _fault("E484", stmt, "the step is 0")
            for bound in (lo, hi, step):
                _is_scalar(bound, "i64", stmt, "a bound")
        case If(cond):
            _is_scalar(cond, "bool", stmt, "a condition")
        case Let(_, dtype, value):
            if value.dtype != dtype:
                raise _fault("E482", stmt, f"a {value.dtype} cannot be named as {dtype}")
        case Setf(ref, value) | Incf(ref, value):
            if ref.dtype != value.dtype or value.lanes != ref.lanes:
                raise _fault("E482", stmt, f"a {_kind(value)} is stored in a {_kind(ref)}")
            if isinstance(stmt, Incf) and (OPERATORS.get(stmt.fn) is None or OPERATORS[stmt.fn].arity != 2
                                           or DTYPES[ref.dtype].storage):
                raise _fault("E482", stmt, f"'{stmt.fn}' does not combine two values")
            if isinstance(stmt, Setf) and stmt.how and (stmt.how != STREAM or not isinstance(ref, Vref)
                                                        or ref.mask is not None):
                raise _fault("E488", stmt, f"a {_kind(ref)} is not stored with '{stmt.how}'")
            _is_written(ref.buffer, scope, stmt)
        case Prefetch(ref, how):
            if how not in ("", WRITE):
                raise _fault("E488", stmt, f"nothing is prefetched in order to '{how}'")
        case Transpose(ref, axis, value, value_axis):
            if ref.dtype != value.dtype:
                raise _fault("E482", stmt, f"a {_kind(value)} is stored in a {_kind(ref)}")
            if ref.buffer == value.buffer:
                raise _fault("E487", stmt, f"'{ref.buffer}' is transposed into itself")
            for block, across in ((ref, axis), (value, value_axis)):
                _check_block(block, across, scope[block.buffer], stmt)
            _is_written(ref.buffer, scope, stmt)
        case ExternCall(_, args):
            for arg in args:
                if arg.lanes != 1 or (isinstance(arg, Address) and arg.how not in ADDRESSED):
                    raise _fault("E488", stmt, f"{text_of(arg)} is no argument of a C function")
                if isinstance(arg, Address) and arg.how != "read":
                    _is_written(arg.buffer, scope, stmt)
        case Assume(array, least, end):
            if not is_integer(array.dtype) or array.how != "read":
                raise _fault("E482", stmt, f"{text_of(array)} has no elements that an index is made of")
            for bound in (least, end):
                _is_scalar(bound, "i64", stmt, "a bound")
        case Local(_, dtype, shape, space):
            if dtype not in DTYPES or space not in SPACES:
                raise _fault("E488", stmt, f"a local of type '{dtype}' in '{space}'")
            if space in ("register", "stack", "shared") and not all(isinstance(n, Const) for n in shape):
                raise _fault("E488", stmt, f"the shape of a local in '{space}' must be constant")
    if checked and not context.unreachable:
        _accesses_are_in_bounds(stmt, scope, context)


def _is_written(name: str, scope: Scope, stmt: Node) -> None:
    target = scope.get(name)
    if isinstance(target, Buffer) and target.access == "in":
        raise _fault("E488", stmt, f"'{target.name}' is only read by the caller's agreement")


def _check_block(block: Vref, across: int, declared: Node, stmt: Stmt) -> None:
    """A block of vectors: an even number of lanes of at most 8 bytes, contiguous in memory, along two axes."""
    rank = len(block.index)
    contiguous = declared.contiguous_axis if isinstance(declared, Buffer) else rank - 1
    if block.count % 2 or DTYPES[block.dtype].bytes > 8 or is_packed(block.dtype) or block.mask is not None:
        raise _fault("E487", stmt,
                     f"{text_of(block)}: a block has rows of 2, 4, 6 … lanes of at most 8 bytes, all of them touched")
    if block.axis % rank != contiguous or not -rank <= across < rank or across % rank == block.axis % rank:
        raise _fault("E487", stmt,
                     f"{text_of(block)}: its rows are not contiguous, or follow each other along axis {across}")


def _accesses_are_in_bounds(stmt: Stmt, scope: Scope, context: Context) -> None:
    if _are_inside_anywhere(stmt, scope, context):
        return
    for access in accesses(stmt, context):
        for k, (at, position, extent) in enumerate(_positions(access, scope)):
            if not (is_inside(at, position, extent) or is_inside(at.patient(), position, extent)
                    or at.is_contradictory()):
                raise _fault("E483", stmt,
                             f"{text_of(access.ref)}: index {k + 1} is not shown to be inside [0, {text_of(extent)})")


def _are_inside_anywhere(stmt: Stmt, scope: Scope, context: Context) -> bool:
    """Are all accesses of a store in bounds, whatever the conditions in its value? Asked where the value shares parts:
    each way through its conditions is an access of its own, and such ways may be many times more than the parts."""
    if not isinstance(stmt, Setf | Incf) or stmt.value.written_out < SHARED_NODES:
        return False
    nodes = dict.fromkeys([*stmt.ref.unique(), *stmt.value.unique()])
    return stmt.value.written_out >= SHARED_TIMES * len(nodes) and all(
        is_inside(*where) for ref in nodes if isinstance(ref, Aref | Vref)
        for where in _positions(Access(ref, context), scope))


def _positions(access: Access, scope: Scope) -> Iterator[tuple[Context, Expr, Expr]]:
    """For each axis: the context of an access, its index, and the extent."""
    at, positions = access.positions()
    for position, extent in zip(positions, _shape(scope[access.ref.buffer]), strict=True):
        yield at, position, extent


def _shape(declaration: Node) -> tuple[Expr, ...]:
    return (declaration.axes if isinstance(declaration, Buffer) else declaration.shape if isinstance(declaration, Local)
            else ())


def _expression(expr: Expr, scope: Scope, stmt: Node) -> None:
    if _types_agree(expr):
        for name in _named(expr):
            _reference(name, scope, stmt)
        return
    for node in reversed(list(expr.unique())):          # to the first fault
        if isinstance(node, Named):
            _reference(node, scope, stmt)
        if (check := _CHECKS.get(type(node))) is not None:
            check(node, stmt)


@kept
def _types_agree(expr: Expr) -> bool:
    """Do the operators in an expression take operands of these types?"""
    try:
        for node in reversed(list(expr.unique())):
            if (check := _CHECKS.get(type(node))) is not None:
                check(node, node)
    except CatenError:
        return False
    return True


def _reference(node: Named, scope: Scope, stmt: Node) -> None:
    """Check a name or an access against its declaration."""
    match node:
        case Var(name, dtype):
            declared = _declaration(name, scope, stmt)
            declares: Any = declared                  # everything in scope but a buffer declares a type
            if isinstance(declared, Buffer) or dtype != declares.declares()[1]:
                raise _fault("E482", stmt, f"'{name}' is read as a {dtype or 'value without a type'}")
        case Aref(name, index, dtype) | Vref(name, _, index, type=dtype):
            declared = _declaration(name, scope, stmt)
            if not isinstance(declared, Buffer | Local) or dtype != declared.type:
                raise _fault("E482", stmt, f"'{name}' is not an array of {dtype or 'any type'}")
            if len(index) != (axes := len(_shape(declared))):
                raise _fault("E489", stmt, f"{text_of(node)}: '{name}' has {axes} axes")
            for i in index:
                _is_scalar(i, "i64", stmt, "an index")
        case Address(name, _, dtype):
            declared = _declaration(name, scope, stmt)
            if not isinstance(declared, Buffer | Local) or dtype != declared.type:
                raise _fault("E482", stmt, f"'{name}' is not an array of {dtype or 'any type'}")
            takes = stmt.args if isinstance(stmt, ExternCall) else (stmt.array,) if isinstance(stmt, Assume) else ()
            if not any(a is node for a in takes):
                raise _fault("E482", stmt, f"{text_of(node)} is no number")


def _declaration(name: str, scope: Scope, stmt: Node) -> Node:
    if name not in scope:
        raise _fault("E480", stmt, f"'{name}' is not declared before this use")
    return scope[name]


def _check_op(node: Op, stmt: Stmt) -> None:
    row = OPERATORS.get(node.fn)
    if row is None or len(node.args) != row.arity:
        raise _fault("E482", stmt, f"{text_of(node)}: no such operator with {len(node.args)} operands")
    operands = node.args[1:] if node.fn == "where" else node.args
    if node.fn == "where" and node.args[0].dtype != "bool":
        raise _fault("E482", stmt, f"{text_of(node)}: the condition is a {node.args[0].dtype}")
    types = [a.dtype for a in operands]
    if len(set(types)) > 1 or types[0] not in DTYPES or not row.takes_type(types[0]):
        raise _fault("E482", stmt, f"{text_of(node)}: operands of type {', '.join(types)}")
    if {a.lanes for a in node.args} - {1, node.lanes}:
        raise _fault("E487", stmt, f"{text_of(node)}: vectors of different lengths")


def _check_conversion(node: Cast | Bitcast, stmt: Stmt) -> None:
    if node.type not in DTYPES or node.arg.dtype not in DTYPES:
        raise _fault("E482", stmt, f"{text_of(node)}: from '{node.arg.dtype}' to '{node.type}'")
    if isinstance(node, Bitcast) and DTYPES[node.type].bits != DTYPES[node.arg.dtype].bits:
        raise _fault("E482", stmt, f"{text_of(node)}: the sizes differ")


def _check_vector(node: Vref, stmt: Stmt) -> None:
    if node.count < 1 or not -len(node.index) <= node.axis < len(node.index):
        raise _fault("E487", stmt, f"{text_of(node)}: {node.count} lanes along axis {node.axis}")
    if node.mask is not None and (node.mask.dtype != "bool" or node.mask.lanes != node.count):
        raise _fault("E487", stmt, f"{text_of(node)}: the mask is a {_kind(node.mask)}")


def _check_fold(node: Fold, stmt: Stmt) -> None:
    if node.fn not in OPERATORS or node.arg.lanes & (node.arg.lanes - 1):
        raise _fault("E487", stmt, f"{text_of(node)}: {node.arg.lanes} lanes do not fold by halves with '{node.fn}'")


def _check_prefix(node: Prefix, stmt: Stmt) -> None:
    if node.arg.lanes < 2 or node.arg.lanes & (node.arg.lanes - 1) or not is_monoid(node.fn, node.arg.dtype):
        raise _fault("E487", stmt, f"{text_of(node)}: {node.arg.lanes} lanes have no prefix by '{node.fn}'")


def _check_lanes(node: Splat | Ramp, stmt: Stmt) -> None:
    if node.count < 1 or any(c.lanes != 1 for c in node.children if isinstance(c, Expr)):
        raise _fault("E487", stmt, f"{text_of(node)}: a vector is made of scalars")


def _check_scalars(node: Lanes, stmt: Stmt) -> None:
    if len({a.dtype for a in node.args}) != 1 or any(a.lanes != 1 for a in node.args):
        raise _fault("E487", stmt, f"{text_of(node)}: a vector is made of scalars of one type")


def _check_shuffle(node: Shuffle, stmt: Stmt) -> None:
    if any(not 0 <= p < node.arg.lanes for p in node.picks):
        raise _fault("E487", stmt, f"{text_of(node)}: the vector has {node.arg.lanes} lanes")


_CHECKS: dict[type[Node], Callable[..., None]] = {
    Op: _check_op, Cast: _check_conversion, Bitcast: _check_conversion, Vref: _check_vector, Splat: _check_lanes,
    Ramp: _check_lanes, Fold: _check_fold, Prefix: _check_prefix, Shuffle: _check_shuffle,
    Lanes: _check_scalars,
}


def _is_scalar(expr: Expr, dtype: str, stmt: Node, role: str) -> None:
    if expr.dtype != dtype or expr.lanes != 1:
        raise _fault("E482", stmt, f"{text_of(expr)}: {role} is a {_kind(expr)}, not {dtype}")


def _kind(expr: Expr) -> str:
    return expr.dtype if expr.lanes == 1 else f"vector of {expr.lanes} {expr.dtype}"


def _fault(code: str, node: Node, message: str) -> CatenError:
    first = next((c for c in node.children if isinstance(c, Expr)), None)
    shown = (f"(for {node.name} …)" if isinstance(node, For) else text_of(node) if node.written_out < SHARED_NODES
             else f"({node.head} {'' if first is None or first.written_out > SHARED_NODES else text_of(first)} …)")
    return error(code, f"{message}, in {shown if len(shown) <= 120 else shown[:117] + '…'}",
                 hint="this program was made by the compiler: please report it with the spec")


__all__ = ["arrays_are_sound", "verify"]
