"""A library with fewer axes than its callers have: what is called, where `~` stands for several axes."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.expr import Expr, Op, Var
from ..core.node import substitute
from ..core.program import Buffer, Program, Signature
from ..core.size_formula import formula, spell
from ..frozen import frozen
from ..runtime.call import Operators, callables, library_of
from ..runtime.manifest import Manifest, operators
from .renamed_library import under_manifest

Sizes = Mapping[str, tuple[str, ...]]        # a size of the library, and those of the caller whose product it is


@frozen
class Said:
    """What a library says of itself: its axes are not those of the calls."""

    manifest: Manifest
    source: str


def with_axes(library: Any, programs: Sequence[Program], sizes: Sequence[Sizes]) -> Any:
    """A loaded library whose calls have the axes of `programs`; itself where these are its own. `sizes`: of each
    program."""
    if all(len(group) == 1 for each in sizes for group in each.values()):
        return library
    loaded = library_of(library)
    manifest = loaded.manifest
    seen = [_seen(op, p, each) for op, p, each in zip(operators(manifest), programs, sizes, strict=True)]
    manifest = seen[0] if "ops" not in manifest else manifest | {
        "ops": [{key: value for key, value in op.items() if key not in manifest} for op in seen]}
    made = callables(under_manifest(loaded, manifest))
    source, own = (next(iter(library.values())) if isinstance(library, Operators) else library).said
    made.says(source, own or Said(loaded.manifest, source))
    return made


def _seen(op: Manifest, program: Program, sizes: Sizes) -> Manifest:
    """The manifest of an operator with the axes of a program."""
    buffers, declared = {b.name: b for b in program.all(Buffer)}, program.first(Signature)
    return op | {"signature": list(declared.tensors) if declared else [],
                 "any_axes": {name: list(group) for name, group in sizes.items()},
                 "arguments": [a for argument in op["arguments"] for a in _arguments(argument, buffers, sizes)],
                 "scratch_bytes": _over(op["scratch_bytes"], sizes)}


def _arguments(argument: Mapping[str, Any], buffers: Mapping[str, Buffer], sizes: Sizes) -> Iterator[Manifest]:
    name = argument["name"]
    if name in buffers:
        yield dict(argument) | {"shape": [spell(e) for e in buffers[name].shape], "order": list(buffers[name].order)}
    else:
        yield from [dict(argument) | {"name": each} for each in sizes.get(name, (name,))]


def _over(text: str | int, sizes: Sizes) -> str | int:
    """A formula over the sizes of the caller."""
    expr = formula(text)
    for name, group in sizes.items():
        product: Expr = Var(group[0], "i64")
        for other in group[1:]:
            product = Op("mul", (product, Var(other, "i64")))
        expr = substitute(expr, {Var(name, "i64"): product})
    return spell(expr)
