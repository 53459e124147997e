"""C identifiers for the names of a program: kept as the user wrote them unless C, its library or the printed text needs
the name."""
from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import zip_longest

from ..errors import Place, error

_KEYWORDS = """auto break case char const continue default do double else enum extern float for goto if inline int long
register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof
class new delete this template namespace operator private public protected friend virtual using try catch throw explicit
export mutable typename and or not xor bitand bitor compl true false bool main nullptr constexpr alignas alignof
static_assert thread_local linux unix i386"""
_LIBM = """acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor
fma fmax fmin fmod frexp hypot ilogb j0 j1 jn y0 y1 yn ldexp lgamma llrint llround log log10 log1p log2 logb lrint
lround modf nan nearbyint nextafter nexttoward pow remainder remquo rint round scalbln scalbn sin sinh sqrt tan tanh
tgamma trunc gamma exp10 pow10 significand drem scalb finite"""
_MACROS = """NULL EOF INFINITY NAN HUGE_VAL HUGE_VALF HUGE_VALL isnan isinf isfinite isnormal signbit fpclassify
isgreater isgreaterequal isless islessequal islessgreater isunordered math_errhandling MATH_ERRNO MATH_ERREXCEPT FP_NAN
FP_INFINITE FP_ZERO FP_SUBNORMAL FP_NORMAL FP_FAST_FMA FP_FAST_FMAF FP_FAST_FMAL FP_ILOGB0 FP_ILOGBNAN EXIT_SUCCESS
EXIT_FAILURE RAND_MAX MB_CUR_MAX SIZE_MAX PTRDIFF_MAX PTRDIFF_MIN WCHAR_MAX WCHAR_MIN WINT_MAX WINT_MIN SIG_ATOMIC_MAX
SIG_ATOMIC_MIN aligned_alloc malloc calloc realloc free abort exit abs labs llabs div ldiv lldiv omp_get_max_threads
omp_get_thread_num signgam"""
RESERVED = frozenset([*_KEYWORDS.split(), *_MACROS.split(), *[n + s for n in _LIBM.split() for s in ("", "f", "l")]])
# Words of OpenCL C and CUDA besides: the qualifiers, the types of vectors, and what a kernel knows of its place.
_DEVICE_WORDS = """kernel global local constant private generic read_only write_only read_write pipe complex imaginary
unroll blockIdx threadIdx blockDim gridDim warpSize dim3 surface texture"""
_VECTORS = "char uchar short ushort int uint long ulong float double half bool"
OF_DEVICES = frozenset([*_DEVICE_WORDS.split(),
                        *[t + n for t in _VECTORS.split() for n in ("", "1", "2", "3", "4", "8", "16")]])
# Name patterns that headers and generated code use: types, limits, constant macros, functions of libraries.
_FAMILY = re.compile(r"ct_|CT_|_|.*_t\Z|U?INT[A-Z0-9_]*_(MAX|MIN|C)\Z|U?INT(8|16|32|64|MAX)_C\Z"
                     r"|M_|Sleef_|omp_|[A-Z]+_MATH_")


def symbol(name: str, prefix: str = "ct_") -> str:
    """The C symbol of an operator: `ct_` and its name in lower case, every other character as `_`."""
    return prefix + "".join([c if c.isascii() and c.isalnum() else "_" for c in name.lower()])


REFERENCE = "_reference"                             # the operator as it was written, in the example program
PYTHON = "_python"                                   # the operator as Python calls it
# The suffixes of an operator's symbol in the names that its library needs.
EXPORTS = ("", "_ws", "_ws_size", "_check", "_manifest", PYTHON, REFERENCE)
OWN = ("ct_manifest", "ct_c64", "ct_c128")           # names that every library or header may declare


def exports(operators: Sequence[str], places: Sequence[Place | None] = ()) -> list[str]:
    """The names that belong to a library of these operators, whatever else its text defines. E666 where two are the
    same, or one is a name of OWN. `places`: where the operators are named."""
    found: dict[str, str] = {}
    for name, place in zip_longest(operators, places):
        for end in EXPORTS:
            text = symbol(name) + end
            if text in OWN:
                raise error("E666", f"the operator {name} would have the symbol {text}, which every library keeps for "
                                    f"itself", place,
                            hint="give it another name")
            if text in found:
                raise error("E666", f"{found[text]} and {name} would have the same symbol {text}", place,
                            hint="rename one of them, or put them into different libraries")
            found[text] = name
    return list(found)


def free(name: str, taken: Collection[str]) -> str:
    """`name`, with as many `_` behind it as make it none of those taken."""
    while name in taken:
        name += "_"
    return name


class Names:
    """One C identifier for each name of a program, assigned on first use."""

    def __init__(self, names: Iterable[str] = (), own: Iterable[str] = (), reserved: Iterable[str] = ()):
        """`own`: names that this compiler made, kept as they are. `reserved`: those that no identifier has."""
        self._given: dict[str, str] = {n: n for n in own}
        self._taken: set[str] = set(reserved)
        for name in names:
            self.of(name)

    def of(self, name: str) -> str:
        """The identifier of a name: always the same one."""
        known = self._given.get(name)
        if known is None:
            known = re.sub(r"\W", "_", name, flags=re.ASCII) or "x"
            if _FAMILY.match(known) or known[0].isdigit():
                known = "x" + known if known[0] in "_0123456789" else "x_" + known
            while known in RESERVED or known in self._taken or _FAMILY.match(known):
                known += "_"
                if _FAMILY.match(known):
                    known += "0"
            self._taken.add(known)
            self._given[name] = known
        return known
