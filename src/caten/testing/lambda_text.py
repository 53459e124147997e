"""The text of a Python test lambda, `lambda A, B, C: C + A @ B`: its syntax and its names, without computing anything.

No name is known but the lambda's own and those of the tables below, so a spec can compute and do nothing else.
"""
from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator

from ..core.program import Attribute, Program
from ..errors import CatenError, Diagnostic, Place, did_you_mean, error

_UFUNCS = """abs absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_and bitwise_not
bitwise_or bitwise_xor cbrt ceil conj conjugate copysign cos cosh divide divmod equal exp exp2 expm1 fabs
float_power floor floor_divide fmax fmin fmod frexp gcd greater greater_equal heaviside hypot invert isfinite isinf
isnan lcm ldexp left_shift less less_equal log log10 log1p log2 logaddexp logical_and logical_not logical_or
logical_xor maximum minimum mod multiply negative not_equal positive power reciprocal remainder right_shift rint
sign signbit sin sinh sqrt square subtract tan tanh true_divide trunc"""
_FUNCTIONS = """all any append arange argmax argmin argsort array asarray atleast_1d atleast_2d average bincount
broadcast_to clip column_stack concatenate convolve copy count_nonzero cross cumprod cumsum diag diagonal diff dot
einsum empty_like expand_dims eye flip fliplr flipud full full_like gradient histogram histogram_bin_edges hstack
i0 identity imag inner interp iscomplex isneginf isposinf isreal kaiser kron lexsort linspace matmul max mean
median meshgrid min moveaxis nan_to_num nancumprod nancumsum nanmedian nanquantile ndim nonzero ones ones_like
outer packbits pad prod ravel real repeat reshape resize roll rot90 round searchsorted select shape sort split
squeeze stack std sum swapaxes take take_along_axis tensordot tile trace transpose tri tril triu unique unpackbits
unwrap var vdot vectorize vstack where zeros zeros_like"""
_TYPES = "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
_METHODS = """all any argmax argmin argsort astype clip conj conjugate copy cumprod cumsum diagonal dot flatten item
max mean min nonzero prod ravel repeat reshape round sort squeeze std sum swapaxes take trace transpose var view"""
_BUILTINS = ("abs all any bool complex divmod enumerate float int len list "
             "max min pow range reversed round sorted sum tuple zip")
NUMPY = tuple(f"{_UFUNCS} {_FUNCTIONS} {_TYPES} pi e inf nan newaxis".split())
MATH = tuple([n for n in dir(math) if not n.startswith("_")])
_FOURIER = "fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfftn rfft rfftfreq rfftn"
_LINEAR = "cholesky cond det eigh eigvalsh inv lstsq matrix_power matrix_rank norm pinv qr slogdet solve svd"
MODULES: dict[str, tuple[str, ...]] = {"math": MATH} | {
    f"{numpy}{name}": functions for numpy in ("np", "numpy")
    for name, functions in (("", NUMPY), (".fft", tuple(_FOURIER.split())), (".linalg", tuple(_LINEAR.split())))}
BUILTINS = tuple(_BUILTINS.split())
METHODS = frozenset(_METHODS.split())


class LambdaText:
    """A parsed test lambda; `parameters` are its names. E801 or E802 where the text is none."""

    def __init__(self, code: str, place: Place | None = None):
        self.place, self.lines = place, code.split("\n")
        # The text is indented as its author likes; one pair of parentheses makes that irrelevant to Python.
        try:
            node = ast.parse(f"({code}\n)", mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError) as problem:
            raise self.not_python(problem) from None
        if not isinstance(node, ast.Lambda):
            raise self.error("E802", "the test code is not a lambda", node.lineno, node.col_offset,
                             "write `lambda A, B: …`, naming tensors, scalars and sizes")
        if node.args.vararg or node.args.kwarg or node.args.defaults or node.args.kwonlyargs or node.args.posonlyargs:
            raise self.error("E802", "a test lambda takes plain names only", node.lineno, node.col_offset,
                             "no defaults, *args or **kwargs")
        self.node = node
        self.parameters = tuple(a.arg for a in node.args.args)

    def not_python(self, problem: Exception) -> CatenError:
        """E801 where Python's parser stopped; at the end of the text if that is our own parenthesis."""
        line, column = getattr(problem, "lineno", 1) or 1, (getattr(problem, "offset", 1) or 1) - 1
        message = f"the test code is not Python: {getattr(problem, 'msg', None) or problem}"
        if (line, column) == (1, 0) or line > len(self.lines):
            line = len("\n".join(self.lines).rstrip().split("\n"))
            column = len(self._line(line).rstrip())
        return self.error("E801", message, line, len(self._line(line)[:column].encode()))

    def error(self, code: str, message: str, line: int = 1, column: int = 0, hint: str | None = None) -> CatenError:
        """A diagnostic at a line (from 1) and a column (from 0, in bytes of UTF-8) of the parenthesised text."""
        place = None
        if self.place is not None:
            before = len(self._line(line).encode()[:column].decode("utf-8", "ignore"))
            first = line == 1
            column = max(self.place.column + before - 1, self.place.column) if first else before + 1
            text = self.place.text if first else self.lines[line - 1]
            place = Place(self.place.file, self.place.line + line - 1, column, text)
        return CatenError(Diagnostic(code, message, place, hint))

    def _line(self, line: int) -> str:
        """A line of the parenthesised text."""
        return ("(" if line == 1 else "") + self.lines[line - 1]

    def check_names(self) -> None:
        """E803 or E804 where it uses a name, or a function of a module, that no test may."""
        known = {*self.parameters, *_bound(self.node), *BUILTINS}
        for node in ast.walk(self.node.body):
            match node:
                case ast.Attribute(value=owner, attr=name) if (
                        (module := module_of(owner)) is not None and module.split(".")[0] not in known
                        and name not in MODULES[module] and f"{module}.{name}" not in MODULES):
                    raise self.no_function(node, module, name)
                case ast.Name(id=name, ctx=ast.Load()) if name not in known and name not in MODULES:
                    raise self.no_name(node, known)

    def no_name(self, node: ast.Name, known: Iterable[str]) -> CatenError:
        return self.error("E803", f"the test code knows no name '{node.id}'", node.lineno, node.col_offset,
                          did_you_mean(node.id, [*sorted(known), *MODULES])
                          or "list it among the lambda's parameters, or use np.… and math.…")

    def no_function(self, node: ast.Attribute, module: str, name: str) -> CatenError:
        return self.error("E804", f"{module}.{name} may not be used in a test", node.lineno, node.col_offset,
                          did_you_mean(name, MODULES[module]) or "only pure functions on arrays are available")


def module_of(node: ast.expr) -> str | None:
    """The module of a table that an expression names, `np` or `np.fft`."""
    match node:
        case ast.Name(id=name):
            return name if name in MODULES else None
        case ast.Attribute(value=ast.Name(id=name), attr=inner):
            return f"{name}.{inner}" if f"{name}.{inner}" in MODULES else None
    return None


def _bound(tree: ast.AST) -> Iterator[str]:
    """The names that lambdas and comprehensions inside bind."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def check_parameters(function: LambdaText, op: Program) -> None:
    """E807 where the lambda asks for what the operator does not have."""
    known = [*[p.declares()[0] for p in op.params if hasattr(p, "declares")], *[a.name for a in op.all(Attribute)]]
    unknown = [n for n in function.parameters if n not in known]
    if unknown:
        own = ", ".join(function.parameters) or "none"
        raise error("E807", f"the test lambda of {op.name} asks for {', '.join(unknown)}", function.place,
                    notes=((f"the lambda's parameters are {own}", None),
                           (f"the operator has {', '.join(known)}", None)),
                    hint=did_you_mean(unknown[0],
                                      known) or "name tensors, scalars, sizes and attributes as the spec spells them")
