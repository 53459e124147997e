"""Annotations of parameters: `caten.f32["M K"]` is an array of float32 with two axes, `caten.f32` a number."""
from __future__ import annotations

from typing import Any

from ..frozen import frozen


@frozen
class ArrayType:
    """An array: its element type, and its shape as the signature of a spec has it. `order`: the memory order, `""` for
    row-major; `"<1 0>"` is column-major."""

    dtype: str
    shape: str
    order: str = ""

    def declaration(self, name: str) -> str:
        """The array in a signature: `A{f32}[M K]`."""
        return f"{name}{{{self.dtype}}}[{self.shape}]{self.order}"


@frozen
class ElementType:
    """An element type; as an annotation, a number of that type."""

    name: str

    def __getitem__(self, shape: str | int | tuple[str | int, ...]) -> ArrayType:
        """`f32["M K"]`, `f32["M", "K"]`, `f32["N", 3]`; `f32["M K<1 0>"]` is column-major."""
        parts = shape if isinstance(shape, tuple) else (shape,)
        if not all(isinstance(part, str | int) for part in parts):
            raise TypeError(f"a shape is a text of sizes, such as \"M K\", or numbers and names; not {shape!r}")
        text = " ".join([str(part) for part in parts])
        sizes, bracket, order = text.partition("<")
        return ArrayType(self.name, sizes.strip(), bracket + order.strip())

    def __call__(self, *shape: str | int) -> ArrayType:
        """`f32("M K")`: the same, for tools that take a text in brackets for a type."""
        return self[shape]

    def __repr__(self) -> str:
        return f"caten.{self.name}"


# Both names that an element type has in specs: caten.float32 is caten.f32.
f16, f32, f64, bf16 = [ElementType(name) for name in ("f16", "f32", "f64", "bf16")]
i8, i16, i32, i64 = [ElementType(name) for name in ("i8", "i16", "i32", "i64")]
u8, u16, u32, u64 = [ElementType(name) for name in ("u8", "u16", "u32", "u64")]
c64, c128 = ElementType("c64"), ElementType("c128")
float16, float32, float64, bfloat16 = f16, f32, f64, bf16
int8, int16, int32, int64 = i8, i16, i32, i64
uint8, uint16, uint32, uint64 = u8, u16, u32, u64
# caten.bool would hide Python's; as an annotation, Python's bool is a truth value, and this an array of them.
bool_ = ElementType("bool")


def annotated(annotation: Any) -> ArrayType | ElementType | None:
    """What an annotation says of a parameter. `Annotated[np.ndarray, caten.f32["M K"]]` says what its part does; None
    for anything else."""
    found = [annotation, *getattr(annotation, "__metadata__", ())]
    return next((each for each in found if isinstance(each, ArrayType | ElementType)), None)
