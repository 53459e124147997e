"""The statements of one kernel in C."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import reduce

from ..core.dtypes import DTYPES
from ..core.expr import Const, Expr, Op, Var, index
from ..core.node import Node, substitute, unique_in
from ..core.program import At
from ..errors import error
from ..loop.early_exit import leaving_condition
from ..loop.statements import (
    STREAM,
    Address,
    Aref,
    Assume,
    Barrier,
    ExternCall,
    Fail,
    For,
    If,
    Incf,
    Kernel,
    Let,
    Local,
    Prefetch,
    Ref,
    Setf,
    Stmt,
    Transpose,
    Vref,
)
from . import (
    array_fills,
    c_assignments,
    cache_hints,
    conditional_loads,
    guarded_divisions,
    loop_headers,
    registers,
    short_loops,
)
from .c_expressions import Expressions
from .c_scope import View
from .code import Code
from .common_subexpressions import repeated_parts
from .linear_offsets import product
from .lines import Lines
from .long_kernels import Call, own_nodes
from .scratch_memory import ALIGNMENT, OFFSET, Layout, is_in_scratch
from .source_locations import SourceLocations
from .vector_transposes import transposed
from .work_estimate import ALONE


@dataclass
class KernelBody(Lines):
    """Writes the statements of a kernel. `marks`: the runtime's spellings; `parallel`: may loops run on several
    threads? `threshold`: the operations from which on they do."""

    kernel: Kernel
    expressions: Expressions
    marks: dict[str, str]
    layout: Layout
    parallel: bool
    threshold: int = ALONE
    region: tuple[str, str] = ("", "")              # the pragmas of a parallel region and of a work-sharing loop in it
    places: SourceLocations = field(default_factory=lambda: SourceLocations(()))
    file: str = ""
    declares_in_for: bool = True                    # may the head of a loop declare its variable?
    auto_vectorizes: bool = False                     # does the C compiler vectorise loops, and not always correctly?
    confuses_lanes: bool = False                      # does it load elements under a condition into wrong lanes?
    calls: Mapping[tuple[Stmt, ...], Call] = field(default_factory=dict)      # versions that are functions of their own
    fails: bool = False

    def __post_init__(self) -> None:
        self._label: str | None = None              # the label that a failed parallel iteration jumps to
        self._threaded = False                      # inside a loop that runs on several threads?
        self._in_team = False  # inside a loop that a whole thread team runs, with work-sharing loops in it?
        self._vectors = False                       # inside a loop nest that contains vectors?
        self._position: At | None = None
        self._most: dict[str, int] = {}             # the greatest values of sizes, by the conditions around
        self._outside = frozenset(self.expressions.views)      # arrays of the caller, and those between kernels
        self._widths = registers.vector_widths(self.kernel)
        nodes = own_nodes(self.kernel, self.calls) if self.calls else list(self.kernel.unique())
        read: list[Node] = []                       # expressions whose values are needed
        for node in nodes:
            if isinstance(node, (Setf, Incf, Transpose)):
                read.append(node.value)
            if isinstance(node, (Aref, Vref, For, If, Let, Local)):
                read += [i for i in node.children if isinstance(i, Expr)]
        self._read = {n.name if isinstance(n, Var) else n.buffer
                      for n in unique_in(read) if isinstance(n, (Var, Aref, Vref))}
        self._written = {n.ref.buffer for n in nodes if isinstance(n, (Setf, Incf, Transpose))}
        self._tiles = frozenset([n.name for n in nodes if isinstance(n, Local) and n.space == "register"])
        self._running: list[Expr] = []              # that loops inside the nest which is written have iterations
        self._divides = any(guarded_divisions.is_division(n) for n in nodes)
        self.fails = any(isinstance(n, Fail) for n in nodes)
        self._unfenced = False                      # is there a non-temporal store without a fence after it?
        self.block(self.kernel.body)
        self._fence()
        if self._position is not None:                # the rest belongs to the last statement
            self.lines.append(f'#line {self._position.line} "{self.file}"')

    # -- statements ----------------------------------------------------------------------------------------------------

    def block(self, stmts: tuple[Stmt, ...]) -> None:
        """A list of statements. An assignment right after the declaration of a scalar local becomes its initialiser;
        zeroing what was just declared as zero is dropped."""
        skip, zero = False, ""
        for n, stmt in enumerate(stmts):
            if skip:
                skip = False
                continue
            if zero and c_assignments.is_zeroing(stmt, zero):
                continue
            zero = ""
            self._locate(stmt)
            with self.places.around(stmt):
                match stmt:
                    case For():
                        outside, inside = self._vectors, loop_headers.has_vectors(stmt)
                        self._vectors = outside or inside
                        with self._if_inner_loops_run(stmt):
                            self._loop(stmt, is_rest=outside and not inside)
                        self._vectors = outside
                    case If():
                        self._branch(stmt)
                    case Let(name=name, type=dtype, value=value):
                        if name in self._read:
                            self.line(f"const {self._let_type(stmt)} {self.expressions.names.of(name)} = "
                                      f"{self.expressions.text(value)};")
                            self._declare_vector(name, value, dtype)
                            self.declared = len(self.lines) - 1
                    case Local():
                        first = self._initial(stmt, stmts[n + 1:n + 2])
                        skip = first is not None
                        zero = stmt.name if self._local(stmt, first) else ""
                        self.declared = len(self.lines) - 1
                    case Setf(ref=ref, value=value, how=how):
                        value = self._with_names_for_repeated_parts(value)
                        if how == STREAM and c_assignments.allows_non_temporal_store(self.expressions, ref):
                            self._unfenced = True
                            self.line(c_assignments.render_non_temporal_store(self.expressions, ref, value))
                        else:
                            self.line(c_assignments.render_assignment(self.expressions, ref, value))
                    case Incf(ref=ref, value=value, fn=fn):
                        value = self._with_names_for_repeated_parts(value)
                        self.line(c_assignments.render_update(self.expressions, ref, value, fn))
                    case Transpose():
                        self.line(f"{transposed(stmt, self.expressions)};")
                    case Prefetch():
                        self._prefetch(stmt)
                    case Fail(row=row):
                        self._fail(row)
                    case Barrier():
                        self._barrier()
                    case Assume():                                   # of proofs alone
                        pass
                    case ExternCall():
                        self._extern(stmt)

    def _with_names_for_repeated_parts(self, value: Expr) -> Expr:
        """The value with variables, which are declared here, in the place of what its text would repeat."""
        named: dict[Node, Expr] = {}
        for part in repeated_parts(value, self.expressions):
            own, name = substitute(part, named), f"part {self.expressions.parts}"
            self.expressions.parts += 1
            kind = self.expressions.helpers.type(part.dtype, self.expressions.lanes(part))
            self.line(f"const {kind} {self.expressions.names.of(name)} = {self.expressions.text(own)};")
            self._declare_vector(name, own, part.dtype)
            if self.expressions.is_index(own):
                self.expressions.indices |= {name}
            named[part] = Var(name, part.dtype)
        return substitute(value, named)

    def _prefetch(self, stmt: Prefetch) -> None:
        if not self.expressions.register(stmt.ref):
            self.line(f"{cache_hints.render_prefetch(stmt, self.expressions).text};")

    def _barrier(self) -> None:
        raise error("E612", "(barrier) needs a runtime with thread groups",
                    hint="schedule for a GPU runtime, or leave it out")

    def _extern(self, stmt: ExternCall) -> None:
        """Declare a C function, and call it."""
        helpers = self.expressions.helpers
        types = [f"{'const ' if a.how == 'read' else ''}{helpers.type(a.dtype)} *" if isinstance(a, Address)
                 else helpers.type(a.dtype) for a in stmt.args]
        self.line(f"extern void {stmt.fn}({', '.join(types) or 'void'});")
        self.line(f"{stmt.fn}({', '.join([self.expressions.text(a) for a in stmt.args])});")

    def _initial(self, local: Local, following: tuple[Stmt, ...]) -> Expr | None:
        """The value that the next statement assigns to a scalar local, if it does."""
        match following:
            case (Setf(ref=ref, value=value),) if not local.shape and ref is Aref(local.name, (), local.type):
                return value
        return None

    def _locate(self, stmt: Stmt) -> None:
        """`#line` before a statement whose source location is known; later ones keep that location."""
        if not self.file:
            return
        self._position = self.places.of(stmt, self._position)
        if self._position is not None:
            self.lines.append(f'#line {self._position.line} "{self.file}"')

    def _let_type(self, let: Let) -> str:
        lanes = self.expressions.lanes(let.value)
        if let.type == "bool" and lanes > 1:
            return self.expressions.helpers.mask_type(self.expressions.mask_bits(let.value), lanes)
        return self.expressions.helpers.type(let.type, lanes)

    def _declare_vector(self, name: str, value: Expr, dtype: str) -> None:
        lanes = self.expressions.lanes(value)
        if lanes > 1:
            self.expressions.vectors[name] = (lanes, self.expressions.mask_bits(value) if dtype == "bool" else 0)

    def _branch(self, stmt: If, head: str = "if") -> None:
        if isinstance(stmt.cond, Const) and stmt.cond.value and head == "if":  # a branch whose condition is constant
            with self.braces(""):
                self.block(stmt.then)
            return
        with self.braces(f"{head} ({self.expressions.text(stmt.cond)})", "}"), self.expressions.given(stmt.cond):
            before, self._most = self._most, {**self._most, **dict(short_loops.bounds(stmt.cond))}
            self._arm(stmt.then)
            self._most = before
        match stmt.otherwise:
            case ():
                return
            case (If() as inner,) if not isinstance(inner.cond, Const):
                self.lines.pop()
                self._branch(inner, "} else if")
            case _:
                self.lines.pop()
                with self.braces("} else"):
                    self._arm(stmt.otherwise)

    def _arm(self, stmts: tuple[Stmt, ...]) -> None:
        """One side of a branch, or a call of the function that it is."""
        call = self.calls.get(stmts)
        if call is None:
            self.block(stmts)
            return
        self.expressions.used |= dict.fromkeys(call.arguments)
        passed = [name if name == "ct_scratch" else self.expressions.names.of(name) for name in call.arguments]
        self.line(f"{call.function}({', '.join(passed)});")

    def _fail(self, row: int) -> None:
        if self._label is None:
            self.line(f"return {row};")
        else:
            self.line("int32_t ct_none = 0;")
            self.line(f"__atomic_compare_exchange_n(&ct_failed, &ct_none, {row}, 0, __ATOMIC_RELAXED, "
                      f"__ATOMIC_RELAXED);")
            self.line(f"goto {self._label};")

    # -- loops ---------------------------------------------------------------------------------------------------------

    def _loop(self, loop: For, is_rest: bool) -> None:
        if loop.mark not in self.marks:
            raise error("E612", f"loop {loop.name}: this runtime has no loops marked '{loop.mark}'",
                        hint=f"it has {', '.join(self.marks)}")
        name = self.expressions.names.of(loop.name)
        once = isinstance(loop.lo, Const) and loop.hi is index(loop.lo.value + 1) and loop.step is index(1)
        if loop.mark != "parallel" and once:
            with self.braces(""):
                if loop.name in self._read:
                    self.line(f"const int64_t {name} = {self.expressions.text(loop.lo)};")
                self.block(loop.body)
            return
        if self.parallel and not self._threaded:
            if self._in_team and loop.mark == "parallel":
                self._threads(loop, self.region[1].removesuffix(" nowait"))
                return
            if not self._in_team and self._parallelize(loop, is_rest):
                return
        if self.declares_in_for and (fill := array_fills.filled_array(loop, self.expressions)) is not None:
            array, count, value = fill
            with self.braces(f"for (int64_t {name} = 0; {name} < {self.expressions.value(count).at(12)}; {name}++)"):
                self.line(f"{self.expressions.mention(array)}[{name}] = {self.expressions.text(value)};")
            return
        copies = loop_headers.unroll_factor(loop) if loop.mark == "unroll" else int(is_rest)
        hint = self.marks["unroll"].format(count=copies) + " " if copies and self.marks["unroll"] else ""
        if not copies and self.auto_vectorizes and short_loops.should_have_a_rest(
                loop, self._most, self.expressions.views, self.expressions.helpers.vector_bytes):
            hint = "CT_WHOLE_VECTORS "
        with self._header(loop, name, hint):
            guard = None if copies else leaving_condition(loop)
            if guard is None:
                self._body(loop)
            else:
                self._body_until(loop, guard)

    @contextmanager
    def _if_inner_loops_run(self, loop: For) -> Iterator[None]:
        """Around a nest of loops that adds to a register tile: `if` those inside have iterations."""
        conds = [cond for cond in loop_headers.inner_loops_run(loop, self._tiles) if cond not in self._running]
        if not conds:
            yield
            return
        self._running += conds
        cond = reduce(lambda a, b: Op("and", (a, b)), conds)
        with self.braces(f"if ({self.expressions.text(cond)})"):
            yield
        del self._running[-len(conds):]

    def _body_until(self, loop: For, guard: Expr) -> None:
        """The body of a loop that ends where the condition does not hold."""
        self.line(f"if (!({self.expressions.text(guard)})) break;")
        *declared, branch = loop.body
        assert isinstance(branch, If)
        with self.expressions.given(guard):
            self._body(loop.replace(body=(*declared, *branch.then)))

    def _body(self, loop: For) -> None:
        if (self.auto_vectorizes and self._divides and guarded_divisions.has_conditional_division(loop)) or (
                self.confuses_lanes and conditional_loads.are_side_by_side(loop)):
            self.line(guarded_divisions.KEEP_SCALAR)
        self.block(loop.body)

    def _parallelize(self, loop: For, is_rest: bool) -> bool:
        """Write a parallel loop, if this is one. An OpenMP `if` clause costs some 0.2 microseconds even where it is
        false, more than a small nest, so a short loop is versioned: parallel and serial."""
        gathers = bool(self.region[0]) and loop_headers.can_share_one_team(loop)
        if not gathers and loop.mark != "parallel":
            return False
        enough = loop_headers.parallel_condition(loop, self.expressions, self.threshold)
        if not enough:
            return False
        write, pragma = (self._team_loop, self.region[0]) if gathers else (self._threads, self.marks["parallel"])
        if enough is True:
            write(loop, pragma)
            return True
        at, before = len(self.lines), (self._unfenced, self._position)
        write(loop, f"{pragma} if ({enough})")
        if len(self.lines) - at > loop_headers.MAX_VERSIONED_LINES["team" if gathers else "loop"]:
            return True
        del self.lines[at:]
        self._unfenced, self._position = before
        with self.braces(f"if ({enough})"):
            write(loop, pragma)
        self.lines.pop()
        self.parallel = False
        with self.braces("} else"):
            self._loop(loop, is_rest)
        self.parallel = True
        return True

    def _team_loop(self, loop: For, pragma: str) -> None:
        """A loop that a whole thread team runs, with work-sharing loops in it."""
        with self._private(loop):
            self.line(pragma)
            self._in_team = True
            with self._header(loop, self.expressions.names.of(loop.name)):
                self._body(loop)
            self._in_team = False

    @contextmanager
    def _header(self, loop: For, name: str, before: str = "") -> Iterator[None]:
        """`for (…) {`, after the evaluation of bounds that read memory."""
        lo, step = self.expressions.text(loop.lo), loop.step
        limit = self._once(loop.hi, f"ct_{loop.name}_end")
        if isinstance(step, Const):
            test = f"{name} {'<' if step.value > 0 else '>'} {limit}"
            after = loop_headers.render_increment(name, step.value)
        else:
            by = self._once(step, f"ct_{loop.name}_step")
            test, after = f"{by} > 0 ? {name} < {limit} : {by} < 0 && {name} > {limit}", f"{name} += {by}"
        head = f"{name} = {lo}; {test}; {after})"
        if self.declares_in_for:
            with self.braces(f"{before}for (int64_t {head}"):
                yield
            return
        with self.braces(""):
            self.line(f"int64_t {name};")
            with self.braces(f"{before}for ({head}"):
                yield

    def _once(self, bound: Expr, name: str) -> str:
        """A bound or step of a loop: its own expression, or a name for the value if it reads memory. Copies of an
        unrolled body are in one scope, so each copy has a name of its own."""
        if any(isinstance(n, Ref) for n in bound.unique()):
            copies = sum(f"const int64_t {name} = " in line or f"const int64_t {name}_" in line for line in self.lines)
            name = f"{name}_{copies + 1}" if copies else name
            self.line(f"const int64_t {name} = {self.expressions.text(bound)};")
            return name
        return self.expressions.value(bound).at(12)

    def _threads(self, loop: For, pragma: str) -> None:
        fails, lines = any(isinstance(n, Fail) for n in loop.unique()), []
        loops = loop_headers.collapsible_loops(loop)
        for each in loops:
            if not isinstance(each.step, Const):
                raise error("E612", f"loop {each.name}: a parallel loop needs a constant step", hint="mark it serial")
            name, sign = self.expressions.names.of(each.name), "<" if each.step.value > 0 else ">"
            limit = self._once(each.hi, f"ct_{each.name}_end")
            start, step = self.expressions.text(each.lo), loop_headers.render_increment(name, each.step.value)
            lines.append(f"for (int64_t {name} = {start}; {name} {sign} {limit}; {step})")
        self._threaded = True
        with self._team(loop, pragma, f" collapse({len(loops)})" if len(loops) > 1 else ""), ExitStack() as nested:
            for line in lines:
                nested.enter_context(self.braces(line))
            if any(isinstance(n, Local) and is_in_scratch(n) for n in loop.unique()):
                self.line("const int64_t ct_thread = omp_get_thread_num();")
            if fails:
                self._label = f"ct_next_{self.expressions.names.of(loops[-1].name)}"
                self.line("if (__atomic_load_n(&ct_failed, __ATOMIC_RELAXED)) continue;")
            self._body(loops[-1])
            if fails:
                self.line(f"{self._label}: ;")
        if fails:
            self.line("if (ct_failed) return ct_failed;")
        self._label, self._threaded = None, False

    @contextmanager
    def _team(self, loop: For, pragma: str, collapsed: str) -> Iterator[None]:
        """A work-sharing loop. With non-temporal stores, each thread ends its share with a store fence."""
        if self._in_team:
            self.line(pragma + collapsed)
            yield
            return
        streams = cache_hints.has_non_temporal_store(loop)
        if streams:
            self._fence()
        with self._private(loop):
            if not streams:
                self.line(pragma + collapsed)
                yield
                return
            start, share = self.region
            self.line(start + pragma.removeprefix(self.marks["parallel"]))
            with self.braces(""):
                self.line(share + collapsed)
                yield
                self._fence()

    @contextmanager
    def _private(self, loop: For) -> Iterator[None]:
        """Add `firstprivate` to the pragma on the next line, for the outer scalars and pointers that the loop uses: the
        C compiler reloads shared ones after every vector store."""
        at, outside = len(self.lines), self.expressions.used
        self.expressions.used = {}
        yield
        inside, self.expressions.used = self.expressions.used, {**outside, **self.expressions.used}
        own = {n.declares()[0] for n in loop.unique() if isinstance(n, (For, Let, Local))}
        views = self.expressions.views
        known = {*self.expressions.indices, *self._outside}
        known |= {n.name for n in self.kernel.unique()
                  if isinstance(n, Var) or (isinstance(n, Local) and is_in_scratch(n))}
        known |= {n.name for view in views.values() for e in view.strides for n in e.unique() if isinstance(n, Var)}
        copied = [self.expressions.names.of(name) for name in inside if name in known and name not in own]
        if copied:
            self.lines[at] += f" firstprivate({', '.join(copied)})"

    def _fence(self) -> None:
        if self._unfenced:
            self.line("CT_STREAMED;")
        self._unfenced = False

    @property
    def threads_fail(self) -> bool:
        """Does a parallel loop contain a `fail`? Then the kernel declares ct_failed."""
        return any("ct_failed" in line for line in self.lines)

    # -- locals --------------------------------------------------------------------------------------------------------

    def _local(self, local: Local, first: Expr | None) -> bool:
        """Declare a local; is it zero now?"""
        ex = self.expressions
        if local.name not in self._read and first is None and local.name not in self._written:
            return False
        width = self._widths.get(local.name, 0)
        axes = tuple(range(len(local.shape)))
        ex.views[local.name] = View(local.name, local.type, local.shape, axes,
                                    width=0 if is_in_scratch(local) and local.shape else width)
        kind, name = ex.helpers.type(local.type, max(1, width)), ex.names.of(local.name)
        if width and not (is_in_scratch(local) and local.shape):
            if first is not None:
                self.line(f"{kind} {name} = {ex.text(first)};")
            else:
                zero = " = {0}" if width > 1 or DTYPES[local.type].kind == "complex" else " = 0"
                names = [ex.names.of(v) for v in registers.variables(local, width)]
                for at in range(0, len(names), 8):
                    self.line(f"{kind} {', '.join([v + zero for v in names[at:at + 8]])};")
            if local.name not in self._read:
                for v in registers.variables(local, width):
                    self.line(f"(void){ex.names.of(v)};")
            return first is None
        if is_in_scratch(local):
            self.line(self.scratch_pointer(local))
        else:
            elements = product(local.shape)
            assert isinstance(elements, Const)
            self.line(self._array(local, max(1, elements.value)))
        return False

    def _array(self, local: Local, elements: int) -> str:
        """The declaration of an array on the stack."""
        return (f"_Alignas({ALIGNMENT}) {self.expressions.helpers.type(local.type)} "
                f"{self.expressions.names.of(local.name)}[{elements}];")

    def scratch_pointer(self, local: Local) -> str:
        """The declaration of a local in scratch memory."""
        ex, slot = self.expressions, self.layout.slots[local.name]
        ex.used["ct_scratch"] = None
        parts, at = [], "ct_scratch"
        if slot.offset is not index(0):
            parts.append((slot.offset, ex.value(slot.offset)))
        if self._threaded and slot.step is not index(0):
            parts.append((slot.step, Code(f"ct_thread * {ex.value(slot.step).at(15)}", 14)))
        if parts:
            text = " + ".join([part.at(13) for _, part in parts])
            known = all(isinstance(bytes_, Const) for bytes_, _ in parts)
            at += f" + {text}" if known else f" + {ex.helpers.define('ct_offset', lambda: OFFSET)}({text})"
        return (f"{ex.helpers.type(local.type)} *restrict {ex.names.of(local.name)} = "
                f"__builtin_assume_aligned({at}, {ALIGNMENT});")

    def aligned_parameter(self, local: Local) -> str:
        """What a kernel knows of a parameter that is in scratch memory in every run."""
        name = self.expressions.names.of(local.name)
        return f"{name} = __builtin_assume_aligned({name}, {ALIGNMENT});"
