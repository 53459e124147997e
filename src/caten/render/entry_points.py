"""Render the entry points of the C ABI: checks of the arguments, scratch memory, kernel calls."""
from __future__ import annotations

import re

from ..core.dtypes import is_packed
from ..core.expr import Const, Expr, Var, index
from ..core.program import Buffer, Check, Ensure, Scalar, Size
from ..loop.affine import linear
from ..loop.effects import written
from ..loop.empty_calls import begins_idle, idle_sizes_of_kernels
from ..loop.statements import Kernel, Local, LoopProgram, Run
from .c_expressions import Expressions
from .c_identifiers import Names, free, symbol
from .c_statements import KernelBody
from .cpu_check import UNSUPPORTED_CPU
from .helper_functions import Helpers
from .linear_offsets import offset
from .lines import INDENT
from .scratch_memory import ALIGNMENT, THREADS, Layout, needed
from .work_estimate import in_floats

NO_MEMORY = 1 << 62                    # bytes: more than any machine has, and fits an int64
LARGE, PAGE = 4 << 20, 2 << 20         # bytes: the threshold for huge pages, and the size of one
# Cache line alignment only: glibc keeps such a block for the next call, but unmaps one aligned to a huge page at once.
ALLOCATE = f"""static void *ct_allocate(int64_t bytes)
{{
    char *block = aligned_alloc({ALIGNMENT}, ((size_t)bytes + {ALIGNMENT - 1}) & ~(size_t){ALIGNMENT - 1});
#if defined(__linux__)
    extern int madvise(void *, size_t, int);
    const size_t ahead = -(uintptr_t)block & {PAGE - 1};
    if (block && bytes >= {LARGE}) (void)madvise(block + ahead, ((size_t)bytes - ahead) & ~(size_t){PAGE - 1}, 14); \
 /* MADV_HUGEPAGE: a wish */
#endif
    return block;
}}
"""


Argument = Buffer | Scalar | Size


def arguments(program: LoopProgram) -> tuple[Argument, ...]:
    """The parameters in the order of the C function: tensors and scalars as declared, sizes, strides array by array."""
    strides = [s.name for b in program.all(Buffer) for s in b.strides if isinstance(s, Var)]
    scalars = {p.name: p for p in program.params if isinstance(p, (Scalar, Size))}
    return (*[p for p in program.params if isinstance(p, Buffer) or (isinstance(p, Scalar) and p.name not in strides)],
            *[p for p in program.all(Size) if p.name not in strides],
            *[scalars.get(n, Size(n)) for n in dict.fromkeys(strides)])


def workspace_parameters(program: LoopProgram, total: Expr) -> list[Argument]:
    """The parameters of `ct_NAME_ws_size` in the order of the C function: all sizes, and each scalar that `total`
    depends on."""
    strides = {s.name for b in program.all(Buffer) for s in b.strides if isinstance(s, Var)}
    return [p for p in arguments(program)
            if p.name in total.variables or (isinstance(p, Size) and p.name not in strides)]


class EntryPoints:
    """Collects the kernels of a program and writes its C functions: `ct_NAME_ws`, `ct_NAME_ws_size`, `ct_NAME_check`,
    and `ct_NAME` where calls can allocate memory."""

    def __init__(self, program: LoopProgram, names: Names, helpers: Helpers, layout: Layout, prefix: str = "ct_",
                 allocates: bool = True,
                 checks_cpu: bool = False):
        self.symbol = symbol(program.name, prefix)
        self.program, self.names, self.helpers, self.layout, self.allocates = program, names, helpers, layout, allocates
        self.params = arguments(program)
        self.between = {c.name: c for c in program.all(Local)}             # arrays between kernels
        self.cpu_check = [f"{INDENT}if (CT_UNFIT) return {UNSUPPORTED_CPU};"] if checks_cpu else []
        self.pointers: dict[str, str] = {}                                # to those, as they are passed to kernels
        self.functions: dict[str, tuple[str, list[str], bool]] = {}       # kernel -> C function, arguments, may it fail
        self.expressions = Expressions(helpers, names,
                                       flags=frozenset(s.name for s in program.all(Scalar) if s.type == "bool"))

    def declaration(self, param: Argument) -> str:
        """A parameter as the kernels and entry points take it."""
        match param:
            case Buffer(name=name, type=dtype, access=access):
                element = "uint8_t" if is_packed(dtype) else self.helpers.type(dtype)
                return f"{'const ' if access == 'in' else ''}{element} *restrict {self.names.of(name)}"
            case Scalar(name=name, type=dtype):
                return f"{self.helpers.type(dtype)} {self.names.of(name)}"
            case Size(name=name):
                return f"int64_t {self.names.of(name)}"

    def array(self, array: Buffer | Local, written: bool) -> str:
        """An array as a kernel takes it whose arrays differ from run to run."""
        element = "uint8_t" if is_packed(array.type) else self.helpers.type(array.type)
        return f"{'' if written else 'const '}{element} *restrict {self.names.of(array.name)}"

    def argument(self, name: str, run: Run) -> str:
        """An argument of a kernel in a run."""
        actual, start = run.arrays.get(name, name), run.starts.get(name)
        pointer = self.passed(actual)
        if start is None:
            return pointer
        array = self.between.get(actual) or self.program.buffers[actual]
        at = (offset(start, array.shape, tuple(range(len(array.shape)))) if isinstance(array, Local) else
              offset(start, array.axes, array.axes_in_memory, array.strides))
        return pointer if at is index(0) else f"{pointer} + {self.expressions.value(at).at(13)}"

    def passed(self, name: str) -> str:
        """A parameter, or an array between kernels, as an argument of a kernel."""
        between = self.between.get(name)
        if between is None:
            return name if name == "ct_scratch" else self.names.of(name)
        if name not in self.pointers:
            offset, at = self.layout.slots[name].offset, "(char *)ct_scratch"
            if offset is not index(0):
                at += f" + {self.expressions.value(offset).at(13)}"
            self.pointers[name] = f"({self.helpers.type(between.type)} *)({at})"
        return self.pointers[name]

    def kernel(self, name: str, body: KernelBody) -> str:
        """The C function of a kernel, with the parameters that it uses. Arrays that differ from run to run are
        parameters, also those in scratch memory. A parameter that is the beginning of an array in scratch memory in all
        runs is aligned."""
        runs = [run for run in self.program.runs if run.kernel.name == body.kernel.name]
        repeats = [run.arrays for run in runs]
        moved = {name for run in runs for name in run.starts}
        varying = {old for arrays in repeats for old in arrays} | moved
        changed = written(body.kernel.body)
        globals_ = [c for c in self.program.all(Local) if c.name in body.expressions.used]
        pointers = [INDENT + (body.aligned_parameter(c) if c.name in varying else body.scratch_pointer(c))
                    for c in globals_
                    if c.name not in varying or (c.name not in moved and all(
                        arrays.get(c.name, c.name) in self.between for arrays in repeats))]
        used = [p for p in (*self.params, *[c for c in globals_ if c.name in varying])
                if p.name in body.expressions.used]
        parameters = [self.array(p, p.name in changed) if isinstance(p, Local)
                      or (isinstance(p, Buffer) and p.name in varying) else self.declaration(p) for p in used]
        arguments = [p.name for p in used]
        if "ct_scratch" in body.expressions.used:
            parameters.append("char *ct_scratch")
            arguments.append("ct_scratch")
        self.functions[body.kernel.name] = name, arguments, body.fails
        lines = [f"static {'int32_t' if body.fails else 'void'} {name}({', '.join(parameters) or 'void'})", "{"]
        lines += pointers + ([INDENT + "int32_t ct_failed = 0;"] if body.threads_fail else []) + body.lines
        return "\n".join([*lines, *([INDENT + "return 0;"] if body.fails else []), "}", ""])

    def text(self, taken: list[str]) -> str:
        """The entry points. `taken`: the function names of the file so far; new ones are added to it."""
        name = self.symbol
        parameters = [self.declaration(p) for p in self.params]
        passed = [self.names.of(p.name) for p in self.params]
        ensures = self._checks()
        scratch = self.layout.total is not index(0)
        idle = self._idle(scratch)
        checks, enter = "", [*ensures, *idle]
        if scratch and ensures:
            entry = free(f"{name}_entry", taken)
            taken.append(entry)
            mentioned = _mentioned(ensures)
            used = [(p, n) for p, n in zip(parameters, passed, strict=True) if n in mentioned]
            head = f"static int32_t {entry}({', '.join([p for p, _ in used]) or 'void'})"
            checks = "\n".join([head, "{", *ensures, INDENT + "return 0;", "}", ""]) + "\n"
            enter = [f"{INDENT}int32_t ct_status = {entry}({', '.join([n for _, n in used])});",
                     f"{INDENT}if (ct_status) return ct_status;", *idle]
        run = [*enter, *self._kernels(bool(scratch and ensures))]
        ws = [f"CT_API int32_t {name}_ws({', '.join([*parameters, 'void *ct_scratch'])})", "{",
              *self._void(run, [*passed, "ct_scratch"]),
              *self.cpu_check, *run, "}", "", *self._workspace_size()]
        if not self.allocates:
            return checks + "\n".join([*ws, "", *self._texts(name), ""])
        call = [f"CT_API int32_t {name}({', '.join(parameters) or 'void'})", "{"]
        if not scratch:
            call.append(f"{INDENT}return {name}_ws({', '.join([*passed, '0'])});")
        else:
            take, give_back = self._allocate()
            call += [*self.cpu_check, *enter, *take,
                     f"{INDENT}const int32_t ct_result = {name}_ws({', '.join([*passed, 'ct_block'])});", give_back,
                     f"{INDENT}return ct_result;"]
        return checks + "\n".join([*ws, "", *call, "}", "", *self._texts(name), ""])

    def _checks(self) -> list[str]:
        return [f"{INDENT}if (!({self.expressions.text(e.cond)})) return {e.row};" for e in self.program.all(Ensure)]

    def _idle(self, scratch: bool) -> list[str]:
        """An early return for empty calls: they allocate nothing and run no loops."""
        stmts = [s for k in self.program.all(Kernel) for s in k.body]
        sizes = [n for n in idle_sizes_of_kernels(self.program) if scratch or not begins_idle(stmts, n)]
        return [f"{INDENT}if ({' || '.join([f'{self.names.of(n)} == 0' for n in sizes])}) return 0;"] if sizes else []

    def _kernels(self, declared: bool) -> list[str]:
        lines, last = [], len(self.program.runs) - 1
        for n, ran in enumerate(self.program.runs):
            name, arguments, fails = self.functions[ran.kernel.name]
            call = f"{name}({', '.join([self.argument(each, ran) for each in arguments])})"
            if not fails:
                lines.append(f"{INDENT}{call};")
            elif n == last:
                return [*lines, f"{INDENT}return {call};"]
            else:
                lines += [f"{INDENT}{'' if declared else 'int32_t '}ct_status = {call};",
                          f"{INDENT}if (ct_status) return ct_status;"]
                declared = True
        return [*lines, f"{INDENT}return 0;"]

    def _allocate(self) -> tuple[list[str], str]:
        """The lines that allocate scratch memory, and the line that frees it. The size is estimated in floats first, so
        that integers cannot overflow. Size 0, which small arguments often need, allocates nothing. Per-thread memory
        may be large, so only calls that use it allocate it."""
        self.helpers.headers.add("stdlib.h")
        total, test, lines = self.layout.total, "", list[str]()
        if isinstance(total, Const):
            take = f"ct_allocate({min(total.value, NO_MEMORY)})"
            if total.value < LARGE:
                take = f"aligned_alloc({ALIGNMENT}, {total.value})"
        else:
            threads, take = THREADS in total.unique(), "ct_allocate(ct_bytes)"
            when = needed(self.program) if threads else True
            count, size = "omp_get_max_threads()", self.expressions.text(total)
            if isinstance(when, Expr):
                count, size = f"{self.expressions.value(when).at(3)} ? {count} : 0", f"ct_threads > 0 ? {size} : 0"
            if threads:
                lines.append(f"const int64_t ct_threads = {count};")
            lines += [self._refuse_huge(), f"const int64_t ct_bytes = {size};"]
            if isinstance(when, Expr) or linear(total).constant <= 0:
                test = "ct_bytes > 0"
        if take.startswith("ct_allocate"):
            self.helpers.define("ct_allocate", lambda: ALLOCATE)
        if test:
            lines += [f"_Alignas({ALIGNMENT}) char ct_none[{ALIGNMENT}];",
                      f"void *ct_block = {test} ? {take} : ct_none;"]
        else:
            lines.append(f"void *ct_block = {take};")
        lines.append("if (!ct_block) return -1;")
        return [INDENT + line for line in lines], f"{INDENT}{f'if ({test}) ' if test else ''}free(ct_block);"

    def _refuse_huge(self) -> str:
        """Return -1 where the scratch memory exceeds 2^46 bytes. Floating-point arithmetic cannot overflow here;
        integer arithmetic could."""
        return (f"if ({self.expressions.text(in_floats(self.layout.total, self.helpers.widest_float))} > 0x1p46) "
                f"return -1;")

    def _workspace_size(self) -> list[str]:
        """`ct_NAME_ws_size`: the bytes of scratch memory that `ct_NAME_ws` needs for the given sizes, or -1 for sizes
        that a call refuses. A constant is returned without checks."""
        total, params = self.layout.total, workspace_parameters(self.program, self.layout.total)
        if isinstance(total, Const):
            lines = [*(self._idle(True) if total.value else []), f"{INDENT}return {min(total.value, NO_MEMORY)};"]
        else:
            known = {p.name for p in params}
            checks = [self.expressions.text(e.cond) for e in self.program.all(Ensure) if e.cond.variables <= known]
            lines = [*self.cpu_check, *[f"{INDENT}if (!({check})) return -1;" for check in checks], *self._idle(True)]
            if THREADS in total.unique():
                lines.append(f"{INDENT}const int64_t {THREADS.name} = omp_get_max_threads();")
            size = self.expressions.text(total)
            lines.append(INDENT + self._refuse_huge())
            lines.append(f"{INDENT}return {size if linear(total).constant > 0 else f'{size} > 0 ? {size} : 0'};")
        head = f"CT_API int64_t {self.symbol}_ws_size({', '.join([self.declaration(p) for p in params]) or 'void'})"
        return [head, "{", *self._void(lines, [self.names.of(p.name) for p in params]), *lines, "}"]

    def _void(self, lines: list[str], names: list[str]) -> list[str]:
        """`(void)x;` for unused parameters, against -Wunused-parameter."""
        mentioned = _mentioned(lines)
        unused = [n for n in names if n not in mentioned]
        return [INDENT + " ".join([f"(void){n};" for n in unused])] if unused else []

    def _texts(self, name: str) -> list[str]:
        """`ct_NAME_check`: the text of a failure."""
        rows = sorted(self.program.all(Check), key=lambda c: c.row)
        lines = [f"CT_API const char *{name}_check(int32_t row)", "{"]
        lines += [f"{INDENT}if (row == {c.row}) return \"{escaped(c.text)}\";" for c in rows]
        last = f"row == {UNSUPPORTED_CPU} ? ct_Processor_lacks() : \"\"" if self.cpu_check else '""'
        return [*lines, f"{INDENT}return row == -1 ? \"out of memory\" : {last};", "}"]


def escaped(text: str) -> str:
    """The inside of a C string literal."""
    return "".join(["\\" + chr(b) if chr(b) in '"\\?' else chr(b) if 32 <= b < 127 else f"\\{b:03o}"
                    for b in text.encode()])


def _mentioned(lines: list[str]) -> set[str]:
    """The words of a text."""
    return set(re.findall(r"\w+", " ".join(lines)))
