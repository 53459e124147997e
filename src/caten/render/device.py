"""Loop programs in the C of devices: one function for each kernel, which is the program of one thread. Starting them is the host's part.

A runtime for a device derives from `DeviceStyle` and gives it a `Dialect`.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..core.dtypes import is_packed
from ..core.elementary import table
from ..core.program import At, Buffer, Param, Scalar, Size, Source
from ..errors import error
from ..frozen import frozen
from ..loop.groups import block_of, grid_of
from ..loop.statements import For, Kernel, Local, LoopProgram, Ramp, Shuffle, Splat, Vref, is_const
from . import definitions
from .code import CHOICE, Code, Libm, Spelling, call
from .cstyle import OPS, TYPES, CStyle, title
from .entry import arguments
from .expressions import Expressions
from .helpers import Helpers
from .launches import SCRATCH, STATUS, Launch, launch
from .literals import literal
from .names import Names
from .places import Places
from .scratch import layout
from .statements import KernelBody
from .unroll import unroll
from .wrapping import WrappingExpressions, indices, wrapped

AXES = 3
EXACT = ("sqrt", "floor", "ceil", "trunc", "round", "fmax", "fmin", "fma", "truncmod")          # a device computes them as they are meant


@frozen
class Dialect:
    """How a language of devices spells what C has no word for. `{type}` and `{name}` stand for those of a parameter, `{n}` for the number of an
    argument, `{row}` for that of a failed check.

    `kernel`: what begins a kernel's function; `function`: what begins any other; `pointer`, `constant` (a pointer to what is only read), `value`:
    a parameter; `own`: the parameters that every kernel has; `memory`: before the type that a pointer into the caller's memory points to;
    `shared`: before an array of a group; `word`: 32 bits of the caller's memory for atomic operations, `both` and `either`: those, with the bits
    `{bits}`, on what `{at}` points to, with the value before; `group`: the number of the group; `threads`: that of the thread, for x, y and z;
    `barrier`, `fail`: statements; `status`: the parameter of the word that `fail` sets; `words`: the lines that define what the text may use;
    `prelude`: what it begins with; `compound`: a struct of values; `suffix`: behind the name of a function of float32.
    """

    kernel: str
    function: str
    pointer: str
    constant: str
    value: str
    memory: str
    word: str
    both: str
    either: str
    shared: str
    group: str
    threads: tuple[str, str, str]
    barrier: str
    fail: str
    status: str
    words: Mapping[str, str]
    own: tuple[str, ...] = ()
    prelude: str = ""
    compound: str = "({type}){{"
    suffix: str = ""


def integers(**spelled: str) -> dict[str, str]:
    """Lines that define `int8_t …` by the words for 8, 16, 32 and 64 bits; the same with `u` before them are unsigned."""
    return {f"{u}int{bits}_t": f"typedef {word} {u}int{bits}_t;" for u, words in (("", "signed"), ("u", "unsigned"))
            for bits, word in zip((8, 16, 32, 64), spelled[words].split(", "), strict=True)}


class DeviceHelpers(Helpers):
    """Helpers with the spellings of a dialect; functions that a device does not compute closely enough are formulas or go through float64."""

    def __init__(self, types: Mapping[str, str], ops: Mapping[str, Spelling], dialect: Dialect, fused: bool) -> None:
        super().__init__(types, ops, {}, definitions.write, fused)
        self.dialect = dialect
        self.outside = dialect.memory

    def shared_byte(self) -> str:
        """No device has atomic operations on bytes: the word that holds it, of memory that begins and ends with whole words, the low byte first."""
        d = self.dialect
        return f"(uint8_t)({d.either.format(at=f'({d.word} *)p + (e >> 3)', bits='0')} >> (e >> 1 & 3) * 8)"

    def set_shared(self) -> str:
        d = self.dialect
        cleared, put = (form.format(at="at", bits=bits) for form, bits in ((d.both, "~((uint32_t)15 << s)"), (d.either, "(uint32_t)(v & 15) << s")))
        return f"{d.word} *at = ({d.word} *)p + (e >> 3);\nconst int s = (int)(e & 7) * 4;\n{cleared};\n{put};"

    def function(self, name: str, result: str, args: str, body: str, storage: str = "") -> str:
        return super().function(name, result, args, body, self.dialect.function)

    def libm(self, name: str, dtype: str) -> str:
        return f"{name}{self.dialect.suffix if dtype == 'f32' else ''}"

    def apply(self, fn: str, dtype: str, lanes: int, args: tuple[Code, ...]) -> Code:
        spelling = self.ops.get(fn)
        if isinstance(spelling, Libm) and fn not in EXACT and dtype in ("f32", "f64"):
            return call(self.close(fn, spelling.name, dtype, len(args)), *args)
        return super().apply(fn, dtype, lanes, args)

    def close(self, fn: str, name: str, dtype: str, arity: int) -> str:
        """A function within the error of its row: as its form in core.elementary, as far as that holds, else as float64 computes it."""
        a, own, kind = self.arithmetic(dtype), f"ct_{fn}_{dtype}", self.types[dtype]
        double = "f64" in self.types
        formed = table.has_form(fn, a) and not table.is_wide(fn, a)
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
            most = table.limit(fn, a)
            if most is None:
                return definitions.form(self, fn, a, 1, own)
            near = self.define(f"{own}_near", lambda: definitions.form(self, fn, a, 1, f"{own}_near"))
            limit = literal(most, dtype).text
            return self.function(own, kind, parameters, f"return x <= {limit} && x >= -{limit} ? {near}(x) : {native};")
        return self.define(own, make)


@dataclass
class ThreadBody(KernelBody):
    """Writes what one thread does."""

    dialect: Dialect | None = None

    def _loop(self, loop: For, is_rest: bool) -> None:
        if loop.mark not in ("grid", "block"):
            super()._loop(loop, is_rest)
            return
        assert self.dialect is not None
        nest = grid_of(self.kernel) if loop.mark == "grid" else block_of(self.kernel)
        if loop is nest[0]:
            for name, place in self._numbers(nest):
                self.line(f"const int64_t {name} = {place};")
        self.block(loop.body)

    def _numbers(self, nest: tuple[For, ...]) -> list[tuple[str, str]]:
        """The variables of grid or block loops from the numbers of the group or thread. Groups are counted along one axis: no device limits that
        one closely."""
        assert self.dialect is not None
        ex, found, number = self.expressions, [], f"{'(uint32_t)' if len(nest) > 1 else ''}{self.dialect.group}"
        if nest[0].mark == "block":
            return [(ex.names.of(loop.name), self.dialect.threads[axis]) for axis, loop in enumerate(reversed(nest))]
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
        self.line(self.dialect.fail.format(row=row))
        self.line("return;")

    def _prefetch(self, stmt: object) -> None:
        """Other threads run meanwhile: nothing is asked for ahead."""

    def _array(self, local: Local, elements: int) -> str:
        assert self.dialect is not None
        shared = self.dialect.shared if local.space == "shared" else ""
        return f"{shared}{self.expressions.helpers.type(local.type)} {self.expressions.names.of(local.name)}[{elements}];"

    def scratch_pointer(self, local: Local) -> str:
        assert self.dialect is not None
        ex, offset = self.expressions, self.layout.slots[local.name].offset
        kind = f"{self.dialect.memory}{ex.helpers.type(local.type)} *"
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
        kernels = [self._thread(p, k, launch(p, k, n), helpers) for p in programs for n, k in enumerate(self._looked_at(p).kernels, 1)]
        body = "\n".join([*([own] if (own := helpers.text()) else []), *kernels])
        body = re.sub(r"\((ct_c\d+)\)\{", lambda m: self.dialect.compound.format(type=m[1]), body)
        known = [line + "\n" for name, line in self.dialect.words.items() if re.search(rf"\b{name}\b", body)]
        pieces = [self.dialect.prelude, "".join(known), body]
        return "\n".join([title(p) for p in programs]) + "\n" + "\n".join([p for p in pieces if p])

    def _looked_at(self, program: LoopProgram) -> LoopProgram:
        """The program, if it has no vectors and no types that are not in the table."""
        self.check_types(program)
        for node in program.unique():
            if isinstance(node, Vref | Splat | Ramp | Shuffle):
                raise error("E613", f"{program.name}: this runtime has no vectors", program.place(),
                            hint="do not vectorize, bind loops to the threads of a block")
        return program

    def _thread(self, program: LoopProgram, kernel: Kernel, plan: Launch, helpers: Helpers) -> str:
        names = Names([p.declares()[0] for p in program.params if isinstance(p, Buffer | Scalar | Size)])
        plain: Expressions = self._expressions(program, helpers, names)
        ex = WrappingExpressions(plain.helpers, plain.names, plain.views, plain.flags, indices(plain.indices, kernel))
        written = unroll(program.replace(clauses=tuple([c for c in program.clauses if not isinstance(c, Kernel) or c is kernel]))).kernels[0]
        places = Places(program.all(At), program.first(Source))
        body = ThreadBody(written.map(wrapped), ex, dict(self.marks), layout(program, False), False, places=places, dialect=self.dialect)
        globals_ = [f"    {body.scratch_pointer(c)}" for c in program.all(Local) if c.name in ex.used]
        params = {p.declares()[0]: p for p in arguments(program)}       # type: ignore[attr-defined]   # parameters declare
        declared = [self._parameter(params.get(name), name, n, helpers, names) for n, name in enumerate(plan.arguments)]
        head = _signature(f"{self.dialect.kernel} {plan.function}", [*declared, *self.dialect.own])
        return "\n".join([head, "{", *globals_, *body.lines, "}", ""])

    def _parameter(self, param: Param | None, name: str, number: int, helpers: Helpers, names: Names) -> str:
        match param:
            case Buffer(type=dtype, access=access):
                form = self.dialect.constant if access == "in" else self.dialect.pointer
                return form.format(type="uint8_t" if is_packed(dtype) else helpers.type(dtype), name=names.of(name), n=number)
            case Scalar(type=dtype):
                return self.dialect.value.format(type=helpers.type(dtype), name=names.of(name), n=number)
            case Size():
                return self.dialect.value.format(type="int64_t", name=names.of(name), n=number)
        form = self.dialect.status if name == STATUS else self.dialect.pointer
        return form.format(type="char", name=name, n=number)


def _signature(name: str, parameters: list[str]) -> str:
    """On one line where that is not too long, else a line for each parameter."""
    short = f"{name}({', '.join(parameters)})"
    return short if len(short) <= 140 else f"{name}(\n    " + ",\n    ".join(parameters) + ")"
