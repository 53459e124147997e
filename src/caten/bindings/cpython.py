"""C text by which Python calls an operator directly: for every operator a function of Python's own kind, beside the
operator in its library.

Such a function takes what is exactly right, arrays of numpy with the element type, the axes and the layout of the
operator, whose shapes agree and whose memory does not overlap, and numbers of Python or numpy, and goes straight to the
operator; that takes a quarter of a microsecond. Everything else, and all that is wrong, it leaves to a Python function.
What it needs of Python's C interface is handed in (`attach`): the library itself does not depend on Python."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..calls.call_arguments import OUT_OF_MEMORY
from ..core.dtypes import DTYPES, is_packed
from ..core.expr import Const, Expr, Op, Var
from ..core.size_formula import formula
from ..core.size_inference import GREATEST_SIZE
from ..render.c_identifiers import PYTHON

ROW_MAJOR, COLUMN_MAJOR, ALIGNED, WRITEABLE = 0x1, 0x2, 0x100, 0x400       # flags of numpy's arrays
# Element types of arrays in the order of `ct_Python.elements`, which libraries know: new ones only at the end.
ELEMENTS = ("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "c64", "c128")
# Those of ml_dtypes, after them. Elements of 4 bits lie in a byte each, and two in one for the operator.
EXTENDED = ("bf16", "i4", "u4")
# How the C interface passes a scalar.
C_TYPES: dict[str, str] = {
    "bool": "uint8_t", "i4": "int8_t", "u4": "uint8_t", "f16": "uint16_t", "bf16": "uint16_t",
    "f32": "float", "f64": "double", "c64": "ct_c64", "c128": "ct_c128",
    **{f"i{b}": f"int{b}_t" for b in (8, 16, 32, 64)}, **{f"u{b}": f"uint{b}_t" for b in (8, 16, 32, 64)},
}
EXPORTED = '__attribute__((visibility("default"))) '
# Items of `self`: functions, the names of what may be given, for each size of `any_axes` the number of its axes, and
# what makes each output.
LONG_WAY, FAILURE, NAMES, COUNTS = range(4)
SYMBOLS = {"add": "+", "sub": "-", "mul": "*"}
TOO_LARGE = 1 << 60                                   # elements: no array has as many
MOST_AXES = 32                                        # of an array that goes directly to an operator

# The functions of Python's C interface in the order of `ct_Python`.
FUNCTIONS = ("Py_IncRef", "Py_DecRef", "PyTuple_Size", "PyTuple_GetItem", "PyTuple_Pack", "PyObject_Vectorcall",
             "PyLong_FromLongLong",
             "PyLong_AsLongLong", "PyFloat_AsDouble", "PyErr_Occurred", "PyErr_Clear", "PyEval_SaveThread",
             "PyEval_RestoreThread")

ATTACH = "_Python_parts"                              # no operator's symbol has capitals
_COMMON = f"""
/* Calls from Python: arguments of exactly the right types go to the operator, all others to a Python function, the
   first item of `self`. `parts` has what this needs of Python. */
#if defined(__clang__)
#pragma clang optimize off                           /* the time of the C compiler is worth more here */
#elif defined(__GNUC__)
#pragma GCC optimize ("O0")
#endif
typedef struct ct_Object ct_Object;
static struct {{
    void (*keep)(ct_Object *);
    void (*drop)(ct_Object *);
    intptr_t (*length)(ct_Object *);
    ct_Object *(*item)(ct_Object *, intptr_t);
    ct_Object *(*tuple)(intptr_t, ...);
    ct_Object *(*call)(ct_Object *, ct_Object *const *, uintptr_t, ct_Object *);
    ct_Object *(*number)(long long);
    long long (*integer)(ct_Object *);
    double (*real)(ct_Object *);
    ct_Object *(*failed)(void);
    void (*forget)(void);
    void *(*release)(void);
    void (*acquire)(void *);
    ct_Object *array_type, *float_type, *int_type;
    uintptr_t head;                                  /* bytes of an object's head; its last word points to the type */
    uintptr_t elements[{len(ELEMENTS)}];             /* numpy's numbers for an element type, a bit for each */
    ct_Object *scalars[{len(ELEMENTS)}];             /* numpy's types of single elements */
    intptr_t extended[{len(EXTENDED)}];                           /* numpy's numbers for those of ml_dtypes, or -1 */
}} ct_Python;

{EXPORTED}void LIBRARY(void *const *parts)
{{
    __builtin_memcpy(&ct_Python, parts, sizeof ct_Python);
}}

enum {{ {", ".join([f"ct_{name.upper()} = {ELEMENTS.index(name)}" for name in ("f32", "f64", "i32", "i64")])} }};

static int ct_Python_is(ct_Object *x, ct_Object *type)
{{
    return ((ct_Object **)((char *)x + ct_Python.head))[-1] == type;
}}

/* The arguments in the order of the names in the third item of `self`: the inputs, which must be there, and the only
   output. */
static int ct_Python_order(ct_Object *self, ct_Object *const *given, intptr_t count, ct_Object *words, ct_Object **x,
                           intptr_t inputs)
{{
    ct_Object *known = ct_Python.item(self, 2);
    intptr_t named = words ? ct_Python.length(words) : 0, most = ct_Python.length(known);
    if (count + named > most) return 0;
    for (intptr_t i = 0; i < count; i++) x[i] = given[i];
    for (intptr_t n = 0; n < named; n++) {{
        intptr_t i = count;
        while (i < most && (x[i] || ct_Python.item(known, i) != ct_Python.item(words, n))) i++;
        if (i == most) return 0;
        x[i] = given[count + n];
    }}
    for (intptr_t i = count; i < inputs; i++) if (!x[i]) return 0;
    return 1;
}}

/* A failed call: Python tells why. */
static ct_Object *ct_Python_failure(ct_Object *self, int32_t code, ct_Object *const *given, intptr_t count,
                                    ct_Object *words, ct_Object **all)
{{
    intptr_t total = count + (words ? ct_Python.length(words) : 0);
    if (!(all[0] = ct_Python.number(code))) return 0;
    for (intptr_t i = 0; i < total; i++) all[i + 1] = given[i];
    ct_Object *result = ct_Python.call(ct_Python.item(self, 1), all, (uintptr_t)count + 1, words);
    ct_Python.drop(all[0]);
    return result;
}}
"""

_VIEW ="""
typedef struct { void *data; int64_t bytes, shape[AXES]; const intptr_t *block[AXES]; } ct_View;

/* A numpy array after its head, and the first fields of its element type after that one's head: numpy's C ABI. */
typedef struct {
    char *data; int axes; const intptr_t *shape, *strides; ct_Object *base; char *element; int flags;
} ct_Array;
typedef struct { ct_Object *type; char kind, letter, order, reserved; int number; } ct_Element;

/* Is it an array of numpy, and no other class, of these elements and so many axes? */
static int ct_Python_view_of(ct_Object *x, ct_View *view, int axes, int element, int size, int flags)
{
    if (!ct_Python_is(x, ct_Python.array_type)) return 0;
    const ct_Array *a = (const ct_Array *)((char *)x + ct_Python.head);
    const ct_Element *e = (const ct_Element *)(a->element + ct_Python.head);
    if (a->axes != axes || (a->flags & flags) != flags) return 0;
    if (element < KNOWN ? (unsigned)e->number > 31 || !(ct_Python.elements[element] >> e->number & 1)
                        : e->number != ct_Python.extended[element - KNOWN]) return 0;
    if (e->order != '=' && e->order != '|') return 0;
    view->data = a->data;
    view->bytes = size;
    return 1;
}

/* The same, with its shape. */
static int ct_Python_view(ct_Object *x, ct_View *view, int axes, int element, int size, int flags)
{
    if (!ct_Python_view_of(x, view, axes, element, size, flags)) return 0;
    const intptr_t *shape = ((const ct_Array *)((char *)x + ct_Python.head))->shape;
    for (int i = 0; i < axes; i++) view->bytes *= view->shape[i] = shape[i];
    return 1;
}
"""

_BLOCKS = f"""
enum {{ ct_Most_axes = {MOST_AXES} }};

/* The same for axes some of which stand for `counts` adjacent ones of the array: their extents are multiplied. */
static int ct_Python_blocks(ct_Object *x, ct_View *view, int axes, const int *counts, int element, int size, int flags)
{{
    int all = 0, at = 0;
    for (int i = 0; i < axes; i++) all += counts[i];
    if (all > ct_Most_axes || !ct_Python_view_of(x, view, all, element, size, flags)) return 0;
    const intptr_t *shape = ((const ct_Array *)((char *)x + ct_Python.head))->shape;
    for (int i = 0; i < axes; i++) {{
        view->shape[i] = 1;
        view->block[i] = shape + at;
        for (int n = 0; n < counts[i]; n++) view->bytes *= shape[at + n], view->shape[i] *= shape[at + n];
        at += counts[i];
    }}
    return 1;
}}

static int ct_Python_same(const intptr_t *x, const intptr_t *y, int count)
{{
    for (int i = 0; i < count; i++) if (x[i] != y[i]) return 0;
    return 1;
}}

static int ct_Python_put(int64_t *shape, int at, const intptr_t *block, int count)
{{
    for (int i = 0; i < count; i++) shape[at + i] = block[i];
    return at + count;
}}
"""

_APART ="""
static int ct_Python_apart(const ct_View *a, const ct_View *b)
{
    uintptr_t x = (uintptr_t)a->data, y = (uintptr_t)b->data;
    return !a->bytes || !b->bytes || x + (uintptr_t)a->bytes <= y || y + (uintptr_t)b->bytes <= x;
}
"""

_REAL ="""
/* A number of Python, or numpy's of the same type. */
static int ct_Python_real(ct_Object *x, double *value, double most, int bits)
{
    if (ct_Python_is(x, ct_Python.scalars[bits == 32 ? ct_F32 : ct_F64])) {
        const void *number = (const char *)x + ct_Python.head;
        *value = bits == 32 ? *(const float *)number : *(const double *)number;
    } else {
        if (!ct_Python_is(x, ct_Python.float_type) && !ct_Python_is(x, ct_Python.int_type)) return 0;
        *value = ct_Python.real(x);
        if (*value == -1.0 && ct_Python.failed()) return ct_Python.forget(), 0;
    }
    return !((*value >= most || *value <= -most) && *value - *value == 0.0);
}
"""

_INTEGER ="""
/* A number of Python, or numpy's of the same type where that has 32 or 64 bits and a sign. */
static int ct_Python_integer(ct_Object *x, long long *value, long long least, long long most)
{
    if (least < -(1LL << 60) && ct_Python_is(x, ct_Python.scalars[ct_I64])) {
        *value = *(const int64_t *)((const char *)x + ct_Python.head);
    } else if (least == -(1LL << 31) && ct_Python_is(x, ct_Python.scalars[ct_I32])) {
        *value = *(const int32_t *)((const char *)x + ct_Python.head);
    } else {
        if (!ct_Python_is(x, ct_Python.int_type)) return 0;
        *value = ct_Python.integer(x);
        if (*value == -1 && ct_Python.failed()) return ct_Python.forget(), 0;
    }
    return least <= *value && *value <= most;
}
"""

_PRODUCT = f"""
/* x y, or as many elements as no array has. */
static int64_t ct_Python_product(int64_t x, int64_t y)
{{
    int64_t product;
    return __builtin_mul_overflow(x, y, &product) || product > {TOO_LARGE} ? {TOO_LARGE} : product;
}}
"""

_ALLOCATE ="""
/* A new array, of Python's making: what item `maker` of `self` gives for these extents. */
static ct_Object *ct_Python_new(ct_Object *self, intptr_t maker, const int64_t *shape, int axes, ct_Object **extents)
{
    int made = 0;
    while (made < axes && (extents[made] = ct_Python.number(shape[made]))) made++;
    ct_Object *result = made < axes ? 0 : ct_Python.call(ct_Python.item(self, maker), extents, (uintptr_t)axes, 0);
    while (made > 0) ct_Python.drop(extents[--made]);
    return result;
}
"""

_PACKED = """
#if defined(__clang__)
#pragma clang optimize on
#elif defined(__GNUC__)
#pragma GCC push_options
#pragma GCC optimize ("O3")
#endif
/* A copy of elements of 4 bits with two in a byte; no memory: 0. */
static uint8_t *ct_Python_packed(const uint8_t *restrict x, int64_t count)
{
    uint8_t *restrict made = __builtin_malloc((uintptr_t)count / 2 + 1);
    if (!made) return 0;
    for (int64_t i = 0; i < count / 2; i++) made[i] = (uint8_t)((x[2 * i] & 15) | x[2 * i + 1] << 4);
    if (count & 1) made[count / 2] = x[count - 1] & 15;
    return made;
}
#if defined(__clang__)
#pragma clang optimize off
#elif defined(__GNUC__)
#pragma GCC pop_options
#endif
"""

_ON_DEMAND = {"ct_Python_packed(": _PACKED, "ct_Python_blocks(": _BLOCKS, "ct_Python_apart(": _APART,
              "ct_Python_real(": _REAL, "ct_Python_integer(": _INTEGER, "ct_Python_new(": _ALLOCATE,
              "ct_Python_product(": _PRODUCT}


def attach_symbol(operators: Sequence[Mapping[str, Any]]) -> str:
    """The function that sets the table of Python's functions; the first operator gives it a unique name."""
    return str(operators[0]["symbol"]) + ATTACH


def direct_c(operators: Sequence[Mapping[str, Any]]) -> str:
    """The text for a library of these operators, from their manifests."""
    used = "".join([operator_c(op) for op in operators])
    axes = max([1, *[len(a["shape"]) for op in operators for a in op["arguments"]]])
    common = _COMMON.replace("LIBRARY", attach_symbol(operators))
    view = _VIEW.replace("AXES", str(axes)).replace("KNOWN", str(len(ELEMENTS)))
    parts = [common, view, *[text for word, text in _ON_DEMAND.items() if word in used]]
    return "".join(parts) + used if used else ""


def operator_c(op: Mapping[str, Any]) -> str:
    """The C function of one operator; none for strides, complex scalars, and sizes that are no extent, nor one but
    for a constant factor or term."""
    leading, inputs = [a for a in op["arguments"] if a["kind"] in ("tensor", "scalar")], inputs_of(op)
    sizes = [a["name"] for a in op["arguments"] if a["kind"] == "size"]
    blocks = list(op.get("any_axes", ()))
    looks = [_look(i, a, blocks) for i, a in enumerate(leading)]
    tensors = [i for i, a in enumerate(leading) if a["kind"] == "tensor"]
    shapes = {i: [_extent(formula(e), sizes) for e in leading[i]["shape"]] for i in tensors}
    extents: dict[str, str] = {}
    multiples: dict[str, str] = {}
    sums: dict[str, str] = {}
    for i in tensors:
        for axis, extent in enumerate(leading[i]["shape"]):
            match formula(extent) if i < len(inputs) else None:
                case Var(name=name) if name in sizes:
                    extents.setdefault(name, f"v[{i}].shape[{axis}]")
                case Op(fn="mul", args=(Const(value=int(factor)), Var(name=name)) | (
                        Var(name=name), Const(value=int(factor)))) if name in sizes and factor > 0:
                    multiples.setdefault(name, f"v[{i}].shape[{axis}] / {factor}")     # its shape is compared below
                case Op(fn="add", args=(Const(value=int(term)), Var(name=name)) | (
                        Var(name=name), Const(value=int(term)))) if name in sizes and 0 <= term <= GREATEST_SIZE:
                    sums.setdefault(name, f"v[{i}].shape[{axis}] - {term}")
                case Op(fn="sub", args=(Var(name=name), Const(value=int(term)))) if (
                        name in sizes and 0 <= term <= GREATEST_SIZE):
                    sums.setdefault(name, f"v[{i}].shape[{axis}] + {term}")
    extents = {**sums, **multiples, **extents}
    owners = {name: extents[name].replace(".shape[", ".block[") for name in blocks if name in extents}
    named = set(sizes) & set(op.get("binds", ()))
    strided = any(a["kind"] == "stride" or a["strides"] for a in op["arguments"])
    if strided or named or len(extents) < len(sizes) or "" in looks or any("" in shape for shape in shapes.values()):
        return ""
    computed = any("(" in e for shape in shapes.values() for e in shape)
    agree = [f"n[{s}] <= {GREATEST_SIZE}" for s in range(len(sizes))] if computed else []
    agree += [f"n[{s}] >= 0" for s, name in enumerate(sizes) if extents[name] == sums.get(name)]
    for i in [i for i in tensors if i >= len(inputs)] if blocks else []:
        counts = [f"c{blocks.index(e)}" if e in blocks else "1" for e in leading[i]["shape"]]
        agree += [f"{' + '.join(counts)} <= ct_Most_axes"] if counts else []
    for i in tensors:
        if i < len(inputs):
            agree += _agrees(i, leading, shapes[i], [j for j in tensors if j < len(inputs)], set(extents.values()),
                             owners)
    if len(leading) == len(inputs) + 1:
        i = len(inputs)                                                     # one output that may be given
        agrees = _agrees(i, leading, shapes[i], tensors, set(), owners)
        agree.append(f"(!x[{i}] || ({' && '.join([looks[i], *agrees])}))")
    return _text(op, looks[:len(inputs)], [extents[n] for n in sizes], agree,
                 {i: shapes[i] for i in tensors if i >= len(inputs)}, owners)


def inputs_of(op: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The arguments that a caller gives: all but outputs that are no inputs."""
    return [a for a in op["arguments"] if a["kind"] == "scalar" or (a["kind"] == "tensor" and a["direction"] != "out")]


def _look(i: int, argument: Mapping[str, Any], blocks: Sequence[str]) -> str:
    """The C condition that argument i has the right type, which also reads its value; empty for other types."""
    dtype = DTYPES[argument["dtype"]]
    if argument["kind"] == "scalar":
        if dtype.name in ("f32", "f64"):
            most = "0x1.ffffffp127" if dtype.bits == 32 else "__builtin_inf()"
            return f"ct_Python_real(x[{i}], &s{i}, {most}, {dtype.bits})"
        if dtype.kind in ("int", "uint"):
            return (f"ct_Python_integer(x[{i}], &s{i}, {max(dtype.least, 1 - (1 << 63))}, "
                    f"{min(dtype.greatest, (1 << 63) - 1)})")
        return ""
    order = tuple(argument["order"])
    axes = tuple(range(len(order)))
    layout = ROW_MAJOR if order == axes else COLUMN_MAJOR if order == axes[::-1] else 0
    if not layout or dtype.name not in ELEMENTS + EXTENDED or (
            is_packed(dtype.name) and (argument["direction"] != "in" or layout != ROW_MAJOR)):
        return ""
    flags = layout | ALIGNED | (0 if argument["direction"] == "in" else WRITEABLE)
    as_elements = f"{(ELEMENTS + EXTENDED).index(dtype.name)}, {dtype.bytes}, 0x{flags:x}"
    if any(extent in blocks for extent in argument["shape"]):
        counts = ", ".join([f"c{blocks.index(e)}" if e in blocks else "1" for e in argument["shape"]])
        return f"ct_Python_blocks(x[{i}], &v[{i}], {len(order)}, (const int[]){{{counts}}}, {as_elements})"
    return f"ct_Python_view(x[{i}], &v[{i}], {len(order)}, {as_elements})"


def _extent(expr: Expr, sizes: Sequence[str]) -> str:
    """A formula in C, of sizes up to GREATEST_SIZE; nothing where it might overflow."""
    return _bounded(expr, sizes)[0]


def _bounded(expr: Expr, sizes: Sequence[str]) -> tuple[str, int]:
    """A formula in C, and the greatest magnitude that it and its parts may have."""
    match expr:
        case Const(value=int(value)) if abs(value) <= GREATEST_SIZE:
            return (str(value) if value >= 0 else f"({value})"), abs(value)
        case Var(name=name) if name in sizes:
            return f"n[{sizes.index(name)}]", GREATEST_SIZE
        case Op(fn="add" | "sub" | "mul" | "max" | "min" | "floordiv" | "mod" as fn, args=args):
            (x, most), (y, other) = [_bounded(a, sizes) for a in args]
            divisor = args[1].value if isinstance(args[1], Const) else 0
            if not x or not y or (fn in ("floordiv", "mod") and not (isinstance(divisor, int) and divisor > 0)):
                return "", 0
            if fn in ("floordiv", "mod"):
                whole = f"({x} / {y} - ({x} % {y} < 0))"
                return (whole, most) if fn == "floordiv" else (f"({x} - {y} * {whole})", other + most)
            if fn in ("max", "min"):
                return f"({x} {'>' if fn == 'max' else '<'} {y} ? {x} : {y})", max(most, other)
            most = most * other if fn == "mul" else most + other
            if most < 1 << 62:
                return f"({x} {SYMBOLS[fn]} {y})", most
            return (f"ct_Python_product({x}, {y})", TOO_LARGE) if fn == "mul" else ("", 0)
    return "", 0


def _agrees(i: int, leading: Sequence[Mapping[str, Any]], shape: Sequence[str], others: Sequence[int],
            known: set[str], owners: Mapping[str, str]) -> list[str]:
    """The conditions on array i: its shape where not yet `known`, and for an output no overlap with `others`.
    `owners`: for a size of `any_axes`, where its extents are."""
    names, blocks = leading[i]["shape"], list(owners)
    same = [f"ct_Python_same(v[{i}].block[{axis}], {owners[names[axis]]}, c{blocks.index(names[axis])})"
            if names[axis] in owners else f"{place} == {extent}" for axis, extent in enumerate(shape)
            if (place := f"v[{i}].shape[{axis}]") not in known]
    if leading[i]["direction"] == "in":
        return same
    return same + [f"ct_Python_apart(&v[{i}], &v[{j}])" for j in others if j < i
                   or (j > i and leading[j]["direction"] == "in")]


def _text(op: Mapping[str, Any], looks: Sequence[str], sizes: Sequence[str], agree: Sequence[str],
          outs: Mapping[int, Sequence[str]], owners: Mapping[str, str]) -> str:
    """`looks`: conditions on the inputs; `sizes`: what each one is; `agree`: conditions once these are known; `outs`:
    shapes of what may have to be allocated, by position; `owners`: for a size of `any_axes`, where its extents are."""
    leading = [a for a in op["arguments"] if a["kind"] in ("tensor", "scalar")]
    symbol, count = op["symbols"]["call"], len(leading)
    scalars = {i: a["dtype"] for i, a in enumerate(leading) if a["kind"] == "scalar"}
    returned = [f"x[{i}]" for name in op["outputs"] for i, a in enumerate(leading) if a["name"] == name]
    packed = [i for i, a in enumerate(leading) if a["kind"] == "tensor" and is_packed(a["dtype"])]
    values = [f"({C_TYPES[scalars[i]]})s{i}" if i in scalars else f"p{i}" if i in packed else f"v[{i}].data"
              for i in range(count)]
    made, before, blocks = list[str](), list[str](), list(op.get("any_axes", ()))
    for at, (i, shape) in enumerate(outs.items()):
        extents, axes = f"(const int64_t[]){{{', '.join(shape) or '0'}}}", str(len(shape))
        if any(name in blocks for name in leading[i]["shape"]):
            extents, axes = f"extents{at}", f"axes{at}"
            before += [f"int64_t {extents}[ct_Most_axes];", f"int {axes} = 0;"]
            before += [f"{axes} = ct_Python_put({extents}, {axes}, {owners[name]}, c{blocks.index(name)});"
                       if name in blocks else f"{extents}[{axes}++] = {extent};"
                       for name, extent in zip(leading[i]["shape"], shape, strict=True)]
        maker = COUNTS + len(blocks) + at
        new = f"(x[{i}] = made[{at}] = ct_Python_new(self, {maker}, {extents}, {axes}, all))"
        made.append(f"(x[{i}] || ({new} && {_look(i, leading[i], blocks)}))")
    most = max(count + 1, *[len(s) for s in outs.values()], MOST_AXES if blocks else 1)
    declared = [f"ct_Object *x[{count}] = {{0}}, *all[{most}], *result = 0;", f"ct_View v[{count}];",
                *[f"const int c{n} = (int)ct_Python.integer(ct_Python.item(self, {COUNTS + n}));"
                  for n in range(len(blocks))],
                *[f"{'double' if DTYPES[t].kind == 'float' else 'long long'} s{i};" for i, t in scalars.items()]]
    passed = f"{symbol}({', '.join([*values, *[f'n[{s}]' for s in range(len(sizes))]])})"
    run = ["void *state = ct_Python.release();",
           *[f"uint8_t *const p{i} = ct_Python_packed(v[{i}].data, v[{i}].bytes);" for i in packed],
           f"const int32_t code = {' && '.join([f'p{i}' for i in packed])} ? {passed} : {OUT_OF_MEMORY};" if packed else
           f"const int32_t code = {passed};",
           *[f"__builtin_free(p{i});" for i in packed], "ct_Python.acquire(state);",
           "if (code) result = ct_Python_failure(self, code, given, count, words, all);",
           f"else ct_Python.keep(result = {returned[0]});" if len(returned) == 1 else
           f"else result = ct_Python.tuple({len(returned)}, {', '.join(returned)});"]
    slowly = "ct_Python.call(ct_Python.item(self, 0), given, (uintptr_t)count, words)"
    if made:
        run = [*before, f"ct_Object *made[{len(made)}] = {{0}};", f"if ({' && '.join(made)}) {{", *_inside(run),
               f"}} else if (!ct_Python.failed()) result = {slowly};",
               f"for (int i = 0; i < {len(made)}; i++) if (made[i]) ct_Python.drop(made[i]);"]
    run.append("return result;")
    conditions = [f"ct_Python_order(self, given, count, words, x, {len(looks)})", *looks]
    lines = [*declared, f"if ({' && '.join(conditions)}) {{"]
    if sizes:
        lines += _inside([f"const int64_t n[] = {{{', '.join(sizes)}}};"])
    lines += _inside([f"if ({' && '.join(agree)}) {{", *_inside(run), "}"] if agree else run)
    lines += ["}", f"return {slowly};"]
    head = (f"{EXPORTED}ct_Object *{symbol}{PYTHON}(ct_Object *self, ct_Object *const *given, intptr_t count, "
            f"ct_Object *words)")
    return "\n".join(["", head, "{", *_inside(lines), "}", ""])


def _inside(lines: Sequence[str]) -> list[str]:
    return ["    " + line for line in lines]
