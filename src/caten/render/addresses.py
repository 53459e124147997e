"""Address computation in C: element offsets, pointers, register variables, loads and stores of vectors."""
from __future__ import annotations

from collections.abc import Sequence

from ..core.dtypes import DTYPES
from ..core.expr import Const
from ..errors import error
from ..loop.statements import Aref, Ref, Vref
from . import packed_int4, registers
from .c_scope import Scope
from .code import ADD, EQUALITY, MUL, Code, call, infix, prefix
from .helper_bodies import PART
from .linear_offsets import distance, offset

STRIDED = {"load": "gather", "store": "scatter"}


class Memory(Scope):
    """Elements and vectors of buffers and locals."""

    def register(self, ref: Ref) -> Code | None:
        """The register variable (or a lane of it) that holds the reference, if there is one."""
        assert isinstance(ref, (Aref, Vref))
        view = self.views[ref.buffer]
        if not view.width:
            return None
        name, lane = registers.variable(ref.buffer, ref.index, view.width)
        return Code(f"{self.mention(name)}[{lane}]" if view.width > 1 and isinstance(ref, Aref) else self.mention(name))

    def position(self, ref: Ref) -> Code:
        """The offset of an element (or of a vector's first lane) in its array."""
        assert isinstance(ref, (Aref, Vref))
        view = self.views[ref.buffer]
        return self.value(offset(ref.index, view.shape, view.order, view.strides))

    def pointer(self, ref: Ref) -> Code:
        """The address of a reference (of its first lane)."""
        assert isinstance(ref, (Aref, Vref))
        view = self.views[ref.buffer]
        at = offset(ref.index, view.shape, view.order, view.strides)
        base = Code(self.mention(ref.buffer))
        return base if isinstance(at, Const) and at.value == 0 else Code(f"{base.text} + {self.value(at).at(ADD)}", ADD)

    def place(self, ref: Aref) -> Code:
        """The reference as an lvalue."""
        return self.register(ref) or Code(f"{self.mention(ref.buffer)}[{self.position(ref).text}]")

    def stride(self, ref: Vref) -> Code:
        """The stride between lanes, in elements."""
        view = self.views[ref.buffer]
        return self.value(distance(ref.axis % len(view.shape), view.shape, view.order, view.strides))

    def put(self, ref: Aref, value: Code) -> Code | None:
        """The store of an element that shares its byte with another one; None for other elements."""
        view = self.views[ref.buffer]
        if not view.packed:
            return None
        return call(packed_int4.put(self.helpers, ref.dtype, view.shared), Code(self.mention(ref.buffer)),
                    self.position(ref), value)

    def element(self, ref: Aref) -> Code:
        if (view := self.views[ref.buffer]).packed:
            return call(packed_int4.get(self.helpers, ref.dtype, view.shared), Code(self.mention(ref.buffer)),
                        self.position(ref))
        place = self.place(ref)
        return infix("!=", EQUALITY, place,
                     Code("0")) if ref.dtype == "bool" and self.views[ref.buffer].outside else place

    def load(self, ref: Vref) -> Code:
        named = self.register(ref)
        if named is not None:
            return named
        if DTYPES[ref.dtype].kind == "complex":
            raise error("E613", "complex numbers have no vector form", hint="do not vectorize this loop")
        return self.access("load", ref)

    def part(self, fn: str, ref: Vref) -> Code:
        """A vector of the real or imaginary parts of complex numbers in memory."""
        part, stride = PART[ref.dtype], self.stride(ref)
        first = prefix(f"(const {self.helpers.types[part]} *)", Code(f"({self.pointer(ref).text})"))
        if stride.text == "1":
            conditions = [] if ref.mask is None else [self.condition(ref.mask, DTYPES[part].bits, ref.count)]
            return call(self.helpers.every_second(fn, part, ref.count, bool(conditions)), first, *conditions)
        if ref.mask is None:
            return call(self.helpers.every_second_apart(fn, part, ref.count), first, stride)
        pointer = infix("+", ADD, first, Code("1")) if fn == "imag" else first
        return call(self.helpers.memory("gather_if", part, ref.count), pointer, infix("*", MUL, Code("2"), stride),
                    self.condition(ref.mask, DTYPES[part].bits, ref.count))

    def store_parts(self, ref: Vref, parts: Sequence[Code]) -> Code:
        """The store of complex numbers, from a vector of their real and one of their imaginary parts."""
        part, given, stride = PART[ref.dtype], list(parts), self.stride(ref)
        action = "interleave"
        if stride.text != "1":
            action = "interleave_apart"
            given.insert(0, stride)
        if ref.mask is not None:
            action += "_if"
            given.insert(0, self.condition(ref.mask, DTYPES[part].bits, ref.count))
        pointer = prefix(f"({self.helpers.types[part]} *)", Code(f"({self.pointer(ref).text})"))
        return call(self.helpers.interleaved(action, part, ref.count), pointer, *given)

    def access(self, action: str, ref: Vref, value: Code | None = None) -> Code:
        """A vector load or store: contiguous, strided (gather, scatter) or masked."""
        stride, view, given = self.stride(ref), self.views[ref.buffer], list[Code]()
        if stride.text != "1":
            action = STRIDED[action]
            given.append(stride)
        if ref.mask is not None:
            action += "_if"
            given.append(self.condition(ref.mask, DTYPES[ref.dtype].bits, ref.count))
        given += [] if value is None else [value]
        if view.packed:
            helper = packed_int4.vector(self.helpers, action, ref.dtype, ref.count, view.shared)
            return call(helper, Code(self.mention(ref.buffer)), self.position(ref), *given)
        return call(self.helpers.memory(action, ref.dtype, ref.count), self.pointer(ref), *given)
