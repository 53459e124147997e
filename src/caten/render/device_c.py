"""Loop programs in the C dialects of devices: one kernel function per kernel, in SIMT form. The host launches them.

A runtime for a device derives from `DeviceStyle` and gives it a `Dialect`.
"""
from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from ..core.dtypes import is_packed
from ..core.program import At, Buffer, Scalar, Size, Source
from ..errors import error
from ..loop.gpu_verifier import block_of, grid_of
from ..loop.statements import ExternCall, For, Kernel, Local, LoopProgram, Prefix, Ramp, Shuffle, Splat, Vref, is_const
from ..mathematics.elementary import elementary_table
from . import definitions
from .c_expressions import Expressions
from .c_identifiers import OF_DEVICES, Names
from .c_literals import literal
from .c_statements import KernelBody
from .c_tables import OPS, TYPES
from .code import CHOICE, Code, Libm, Spelling, call
from .cstyle import CStyle
from .entry_points import Argument, arguments
from .helper_functions import Helpers
from .integer_wraparound import WrappingExpressions, indices, wrapped
from .kernel_launch import SCRATCH, STATUS, Launch, launch
from .scratch_memory import layout
from .source_locations import SourceLocations
from .translation_unit import declared_names, title
from .unrolling import unroll

AXES = 3
# correctly rounded on every device
EXACT = ("sqrt", "floor", "ceil", "trunc", "round", "fmax", "fmin", "fma", "truncmod")


class Dialect(ABC):
    """The spelling of what differs between device languages. The attributes stand before declarations and end with a
    space where they are not empty."""

    kernel: str                                     # the qualifiers and the result type of a kernel function
    function: str                                   # the qualifiers of any other function
    global_memory: str                              # the address space of global memory
    shared_memory: str                              # the address space of shared memory, before a local array
    group_id: str                                   # the index of this thread group, along x
    thread_ids: tuple[str, str, str]                # the index of this thread in its group, along x, y and z
    barrier: str                                    # the statement that synchronises the threads of a group
    definitions: Mapping[str, str]                  # a word that a kernel may use -> the line that defines it
    builtin_parameters: tuple[str, ...] = ()        # the parameters that every kernel has
    prelude: str = ""                               # the first lines of the text
    atomic_word: str                                # the type of a 32-bit word for atomic operations
    float_suffix: str = ""                          # after the name of a math function on float32

    @abstractmethod
    def pointer(self, type: str, name: str, position: int, constant: bool = False) -> str:
        """A pointer parameter into global memory; the kernel only reads a `constant` one."""

    @abstractmethod
    def value(self, type: str, name: str, position: int) -> str:
        """A parameter passed by value."""

    @abstractmethod
    def status(self, name: str, position: int) -> str:
        """The parameter for the status word, which `fail` sets."""

    @abstractmethod
    def fail(self, row: int) -> str:
        """The statement that lowers the status word atomically to the number of a failed check."""

    @abstractmethod
    def atomic_and(self, address: str, bits: str) -> str:
        """An atomic AND on a word; its value is the word before."""

    @abstractmethod
    def atomic_or(self, address: str, bits: str) -> str:
        """An atomic OR on a word; its value is the word before."""

    def compound_literal(self, type: str) -> str:
        """The beginning of a struct literal."""
        return f"({type}){{"


def define_integers(*, signed: str, unsigned: str) -> dict[str, str]:
    """The typedefs of `int8_t …` and `uint8_t …`, from the language's types of 8, 16, 32 and 64 bits."""
    return {f"{u}int{bits}_t": f"typedef {word} {u}int{bits}_t;" for u, words in (("", signed), ("u", unsigned))
            for bits, word in zip((8, 16, 32, 64), words.split(", "), strict=True)}


class DeviceHelpers(Helpers):
    """Helpers in a dialect. Math functions whose device version is too inaccurate become formulas or go through
    float64."""

    def __init__(self, types: Mapping[str, str], ops: Mapping[str, Spelling], dialect: Dialect, fused: bool) -> None:
        super().__init__(types, ops, {}, definitions.write, fused)
        self.dialect = dialect
        self.outside = dialect.global_memory

    def shared_byte(self) -> str:
        """Devices have no atomic operations on bytes, so this reads the aligned 32-bit word around the byte. Byte order
        is little-endian."""
        d = self.dialect
        return f"(uint8_t)({d.atomic_or(f'({d.atomic_word} *)p + (e >> 3)', '0')} >> (e >> 1 & 3) * 8)"

    def set_shared(self) -> str:
        d = self.dialect
        return (f"{d.atomic_word} *at = ({d.atomic_word} *)p + (e >> 3);\nconst int s = (int)(e & 7) * 4;\n"
                f"{d.atomic_and('at', '~((uint32_t)15 << s)')};\n{d.atomic_or('at', '(uint32_t)(v & 15) << s')};")

    def function(self, name: str, result: str, args: str, body: str, storage: str = "") -> str:
        return super().function(name, result, args, body, self.dialect.function)

    def libm(self, name: str, dtype: str) -> str:
        return f"{name}{self.dialect.float_suffix if dtype == 'f32' else ''}"

    def apply(self, fn: str, dtype: str, lanes: int, args: tuple[Code, ...]) -> Code:
        spelling = self.ops.get(fn)
        if isinstance(spelling, Libm) and fn not in EXACT and dtype in ("f32", "f64"):
            return call(self.accurate(fn, spelling.name, dtype, len(args)), *args)
        return super().apply(fn, dtype, lanes, args)

    def accurate(self, fn: str, name: str, dtype: str, arity: int) -> str:
        """A math function within its error bound: by its formula in mathematics.elementary where that holds, else
        through float64."""
        a, own, kind = self.arithmetic(dtype), f"ct_{fn}_{dtype}", self.types[dtype]
        double = "f64" in self.types
        formed = elementary_table.has_form(fn, a) and not elementary_table.is_wide(fn, a)
        wide = dtype == "f32" and double
        if not formed and not wide:
            return self.libm(name, dtype)

        def make() -> str:
            operands = "xyz"[:arity]
            native = f"({kind}){self.libm(name, 'f64')}({', '.join([f'(double){x}' for x in operands])})" if wide else \
                f"{self.libm(name, dtype)}({', '.join(operands)})"
            parameters = ", ".join([f"{kind} {x}" for x in operands])
            if not formed:
                return self.function(own, kind, parameters, f"return {native};")
            most = elementary_table.limit(fn, a)
            if most is None:
                return definitions.form(self, fn, a, 1, own)
            near = self.define(f"{own}_near", lambda: definitions.form(self, fn, a, 1, f"{own}_near"))
            limit = literal(most, dtype).text
            return self.function(own, kind, parameters, f"return x <= {limit} && x >= -{limit} ? {near}(x) : {native};")
        return self.define(own, make)


@dataclass
class ThreadBody(KernelBody):
    """Writes the SIMT body of a kernel: what one thread does."""

    dialect: Dialect | None = None

    def _loop(self, loop: For, is_rest: bool) -> None:
        if loop.mark not in ("grid", "block"):
            super()._loop(loop, is_rest)
            return
        assert self.dialect is not None
        nest = grid_of(self.kernel) if loop.mark == "grid" else block_of(self.kernel)
        if loop is nest[0]:
            for name, place in self._thread_indices(nest):
                self.line(f"const int64_t {name} = {place};")
        self.block(loop.body)

    def _thread_indices(self, nest: tuple[For, ...]) -> list[tuple[str, str]]:
        """The variables of grid or block loops, from the group or thread index. The grid is one-dimensional, because
        devices limit the x axis least."""
        assert self.dialect is not None
        ex, found, number = self.expressions, [], f"{'(uint32_t)' if len(nest) > 1 else ''}{self.dialect.group_id}"
        if nest[0].mark == "block":
            return [(ex.names.of(loop.name), self.dialect.thread_ids[axis]) for axis, loop in enumerate(reversed(nest))]
        for loop in reversed(nest):
            extent = f"(uint32_t)({ex.text(loop.hi)}{'' if is_const(loop.lo, 0) else f' - ({ex.text(loop.lo)})'})"
            place = number if loop is nest[0] else f"({number}) % {extent}"
            found.append((ex.names.of(loop.name), place if is_const(loop.lo, 0) else f"{ex.text(loop.lo)} + {place}"))
            number = f"({number}) / {extent}"
        return found

    def _barrier(self) -> None:
        assert self.dialect is not None
        self.line(self.dialect.barrier)

    def _fail(self, row: int) -> None:
        assert self.dialect is not None
        self.line(self.dialect.fail(row))
        self.line("return;")

    def _extern(self, stmt: ExternCall) -> None:
        raise error("E612", f"a device cannot call the C function {stmt.fn}", hint="choose a runtime for the CPU")

    def _prefetch(self, stmt: object) -> None:
        """Nothing: other threads hide the latency."""

    def _array(self, local: Local, elements: int) -> str:
        assert self.dialect is not None
        shared = self.dialect.shared_memory if local.space == "shared" else ""
        return (f"{shared}{self.expressions.helpers.type(local.type)} "
                f"{self.expressions.names.of(local.name)}[{elements}];")

    def scratch_pointer(self, local: Local) -> str:
        assert self.dialect is not None
        ex, offset = self.expressions, self.layout.slots[local.name].offset
        kind = f"{self.dialect.global_memory}{ex.helpers.type(local.type)} *"
        at = Code(SCRATCH) if is_const(offset, 0) else Code(f"{SCRATCH} + {ex.value(offset).at(CHOICE + 1)}", CHOICE)
        return f"{kind}{ex.names.of(local.name)} = ({kind}){at.at(16)};"


class DeviceStyle(CStyle):
    """The tables of a device, and `render`."""

    dialect: Dialect
    types: Mapping[str, str] = TYPES
    ops: Mapping[str, Spelling] = OPS
    marks: Mapping[str, str] = {"serial": "", "unroll": "", "grid": "", "block": ""}
    fused: bool = True

    @property
    def has_threads(self) -> bool:
        return True

    def render(self, *programs: LoopProgram) -> str:
        """One text for one program, or for a library of several."""
        helpers = DeviceHelpers(self.types, self.ops, self.dialect, self.fused)
        kernels = [self._thread(p, k, launch(p, k, n), helpers) for p in programs for n,
                   k in enumerate(self._check_supported(p).kernels, 1)]
        body = "\n".join([*([own] if (own := helpers.text()) else []), *kernels])
        body = re.sub(r"\((ct_c\d+)\)\{", lambda m: self.dialect.compound_literal(m[1]), body)
        known = [line + "\n" for name, line in self.dialect.definitions.items() if re.search(rf"\b{name}\b", body)]
        pieces = [self.dialect.prelude, "".join(known), body]
        return "\n".join([title(p) for p in programs]) + "\n" + "\n".join([p for p in pieces if p])

    def _check_supported(self, program: LoopProgram) -> LoopProgram:
        """The program; E611 or E613 where it has an unsupported type or a vector."""
        self.check_types(program)
        for node in program.unique():
            if isinstance(node, Vref | Splat | Ramp | Shuffle | Prefix):
                raise error("E613", f"{program.name}: this runtime has no vectors", program.place(),
                            hint="do not vectorize, bind loops to the threads of a block")
        return program

    def _thread(self, program: LoopProgram, kernel: Kernel, plan: Launch, helpers: Helpers) -> str:
        names = Names([p.declares()[0] for p in program.params if isinstance(p, Buffer | Scalar | Size)],
                      reserved=OF_DEVICES)
        plain = Expressions(helpers, names, *declared_names(self, program))
        ex = WrappingExpressions(plain.helpers, plain.names, plain.views, plain.flags, indices(plain.indices, kernel))
        written = unroll(program.replace(clauses=tuple([c for c in program.clauses
                                                        if not isinstance(c, Kernel) or c is kernel]))).kernels[0]
        places = SourceLocations(program.all(At), program.first(Source))
        body = ThreadBody(written.map(wrapped), ex, dict(self.marks), layout(program, False), False, places=places,
                          dialect=self.dialect)
        globals_ = [f"    {body.scratch_pointer(c)}" for c in program.all(Local) if c.name in ex.used]
        params = {p.name: p for p in arguments(program)}
        declared = [self._parameter(params.get(name), name, n, helpers, names) for n, name in enumerate(plan.arguments)]
        head = _signature(f"{self.dialect.kernel} {plan.function}", [*declared, *self.dialect.builtin_parameters])
        return "\n".join([head, "{", *globals_, *body.lines, "}", ""])

    def _parameter(self, param: Argument | None, name: str, position: int, helpers: Helpers, names: Names) -> str:
        match param:
            case Buffer(type=dtype, access=access):
                element = "uint8_t" if is_packed(dtype) else helpers.type(dtype)
                return self.dialect.pointer(element, names.of(name), position, constant=access == "in")
            case Scalar(type=dtype):
                return self.dialect.value(helpers.type(dtype), names.of(name), position)
            case Size():
                return self.dialect.value("int64_t", names.of(name), position)
        return self.dialect.status(name, position) if name == STATUS else self.dialect.pointer("char", name, position)


def _signature(name: str, parameters: list[str]) -> str:
    """On one line where that is not too long, else a line for each parameter."""
    short = f"{name}({', '.join(parameters)})"
    return short if len(short) <= 140 else f"{name}(\n    " + ",\n    ".join(parameters) + ")"
