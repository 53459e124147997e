"""precompute: convert or scale the elements of a packed tile once, while packing, instead of at every use."""
from __future__ import annotations

from ...core.expr import Cast, Const, Expr, Op, Var, number
from ...core.node import Node
from ...core.program import Scalar
from ...loop.statements import Aref, Kernel, Local, LoopProgram, Setf, Stmt, Vref
from ..analysis.loop_queries import locals_in, refusal
from ..step_results import NOTHING, Made


def precompute(program: LoopProgram, tile: str) -> tuple[LoopProgram, Made]:
    """Move a conversion or a scalar factor from every use of a tile to the packing of the tile. If every use converts
    the elements to the same type, the tile gets that type. Otherwise, if every use multiplies by the same scalar
    argument (alpha of a gemm), packing multiplies. Zero padding stays zero.

        (precompute A_tile)
        (setf (aref A_tile p) (aref A i p)) …                    (setf (aref A_tile p) (* x (aref A i p))) …
        (incf (aref s) (* (* x (aref A_tile p)) y))      ->      (incf (aref s) (* (aref A_tile p) y))
    """
    step = f"precompute {tile}"
    if not any(n.name == tile for n in locals_in(program)):
        raise refusal("E532", step, f"there is no tile '{tile}'")
    if (target := _converted(program, tile)) is not None:
        return _in_type(program, tile, target), NOTHING
    reads, products, stores = _uses(program, tile)
    factors = {_factor(product, tile) for product in products}
    if len(factors) != 1 or reads != sum(products.values()):
        raise refusal("E532", step, f"its elements are not all multiplied by the same value: {_shown(program, tile)}")
    (factor,) = factors
    if not stores or not isinstance(factor, Var) or factor.name not in {s.name for s in program.all(Scalar)}:
        raise refusal("E532", step, f"{factor} is no scalar of the call")
    scalar = factor

    def go(node: Node) -> Node:
        if isinstance(node, Op) and node in products:
            return node.args[0] if node.args[1] is scalar else node.args[1]
        if isinstance(node, Setf) and isinstance(node.ref, Aref) and node.ref.buffer == tile:
            return node.replace(value=_scaled(node.value, scalar, node.ref.dtype))
        mapped: Node = node.map(go)
        return mapped
    return program.replace(clauses=tuple([c.map(go) if isinstance(c, Kernel) else c for c in program.clauses])), NOTHING


def _converted(program: LoopProgram, tile: str) -> str | None:
    """The type to which every use of a tile converts it; None if they differ."""
    nodes = [n for kernel in program.kernels for n in kernel.walk()]
    filled = sum(1 for n in nodes if isinstance(n, Setf) and isinstance(n.ref, Aref) and n.ref.buffer == tile)
    uses = sum(1 for n in nodes if isinstance(n, Aref | Vref) and n.buffer == tile)
    casts = [n.type for n in nodes if isinstance(n, Cast) and isinstance(n.arg, Aref) and n.arg.buffer == tile]
    return casts[0] if filled and len(set(casts)) == 1 and uses == filled + len(casts) else None


def _in_type(program: LoopProgram, tile: str, target: str) -> LoopProgram:
    """The program with the tile's elements in the type to which they are converted."""
    def go(node: Node) -> Node:
        match node:
            case Cast(arg=Aref(buffer=name) as place) if name == tile:
                return place.replace(type=target)
            case Setf(ref=Aref(buffer=name) as place, value=value) if name == tile:
                return node.replace(ref=place.replace(type=target), value=_cast(value, target))
            case Local(name=name) if name == tile:
                return node.replace(type=target)
        mapped: Node = node.map(go)
        return mapped
    return program.map(go)


def _cast(value: Expr, target: str) -> Expr:
    match value:
        case Op(fn="where", args=(cond, yes, Const(value=0))):
            return Op("where", (cond, _cast(yes, target), number(0, target)))
    return Cast(target, value)


def _scaled(value: Expr, factor: Expr, dtype: str) -> Expr:
    match value:
        case Op(fn="where", args=(cond, yes, Const(value=0) as zero)):
            return Op("where", (cond, _scaled(yes, factor, dtype), zero))
    return Op("mul", (factor, value))


def _uses(program: LoopProgram, tile: str) -> tuple[int, dict[Op, int], int]:
    """The number of reads of the tile, of each product that reads it, and of the statements that fill it."""
    reads, stores, products = 0, 0, dict[Op, int]()
    for kernel in program.kernels:
        for node in kernel.walk():
            if isinstance(node, Setf) and isinstance(node.ref, Aref) and node.ref.buffer == tile:
                stores += 1
                reads -= 1                                            # the element that it sets
            elif isinstance(node, Aref | Vref) and node.buffer == tile:
                reads += 1
            elif isinstance(node, Op) and _factor(node, tile) is not None:
                products[node] = products.get(node, 0) + 1
    return reads, products, stores


def _factor(node: Op, tile: str) -> Expr | None:
    """The other factor of a product with an element of the tile; None if there is none."""
    match node:
        case Op(fn="mul", args=(Aref(buffer=name), other)) if name == tile:
            return other
        case Op(fn="mul", args=(other, Aref(buffer=name))) if name == tile:
            return other
    return None


def _shown(program: LoopProgram, tile: str) -> str:
    uses = [stmt for kernel in program.kernels for stmt in kernel.walk() if isinstance(stmt, Stmt)
            and any(isinstance(n, Aref | Vref) and n.buffer == tile
                    for c in stmt.children if isinstance(c, Expr) for n in c.walk())]
    return ", ".join([str(u) for u in uses[:2]])
