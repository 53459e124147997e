"""Check at run time that the CPU has the instruction set extensions that a library was compiled for.

Code for a newer x86-64 processor fails on an older one with SIGILL. Entry points are therefore compiled for the x86-64
baseline. They check the CPU once with `cpuid`, and return UNSUPPORTED_CPU if it lacks an extension that the compiler's
predefined macros enable.
"""
from __future__ import annotations

from ..frozen import frozen

UNSUPPORTED_CPU = -2                                         # the result of a call if the CPU lacks an extension


@frozen
class Feature:
    """An instruction set extension: its name, the compiler's predefined macro, and its bit in a word of `cpuid`."""

    name: str
    macro: str
    word: str
    bit: int


# Words of cpuid: `basic` leaf 1 ecx; `b7 c7 d7` leaf 7; `a71` leaf 7 part 1 eax; `more` leaf 0x80000001 ecx.
FEATURES: tuple[Feature, ...] = tuple([Feature(name, macro, word, bit) for word, rows in {
    "basic": "sse3:__SSE3__:0 pclmul:__PCLMUL__:1 ssse3:__SSSE3__:9 fma:__FMA__:12 "
             "cx16:__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16:13 sse4.1:__SSE4_1__:19 "
             "sse4.2:__SSE4_2__:20 movbe:__MOVBE__:22 popcnt:__POPCNT__:23 avx:__AVX__:28 f16c:__F16C__:29",
    "more": "lzcnt:__LZCNT__:5 sse4a:__SSE4A__:6 xop:__XOP__:11 fma4:__FMA4__:16 tbm:__TBM__:21",
    "b7": "bmi:__BMI__:3 avx2:__AVX2__:5 bmi2:__BMI2__:8 avx512f:__AVX512F__:16 avx512dq:__AVX512DQ__:17 "
          "avx512ifma:__AVX512IFMA__:21 "
          "avx512cd:__AVX512CD__:28 avx512bw:__AVX512BW__:30 avx512vl:__AVX512VL__:31",
    "c7": "avx512vbmi:__AVX512VBMI__:1 avx512vbmi2:__AVX512VBMI2__:6 gfni:__GFNI__:8 vpclmulqdq:__VPCLMULQDQ__:10 "
          "avx512vnni:__AVX512VNNI__:11 "
          "avx512bitalg:__AVX512BITALG__:12 avx512vpopcntdq:__AVX512VPOPCNTDQ__:14",
    "d7": "avx512fp16:__AVX512FP16__:23",
    "a71": "avxvnni:__AVXVNNI__:4 avx512bf16:__AVX512BF16__:5 avxifma:__AVXIFMA__:23",
}.items() for name, macro, bit in [(n, m, int(b)) for n, m, b in (row.split(":") for row in rows.split())]])
# The `target` attribute that disables all of these for one function; disabling an extension disables those that build
# on it.
_NONE = "arch=x86-64,no-sse3,no-gfni,no-bmi,no-bmi2,no-lzcnt,no-popcnt,no-movbe,no-adx,no-tbm"
_ROWS_OF_A_LINE = 150


def _rows() -> str:
    lines = [""]
    for row in [f'CT_NEEDS({f.macro}, {f.word} >> {f.bit}, "{f.name}")' for f in FEATURES]:
        if lines[-1] and len(lines[-1]) + len(row) > _ROWS_OF_A_LINE:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + row
    return "\n".join(["    " + line for line in lines])


CPU_CHECK = f"""\
/* The processor: this is compiled for one kind of x86-64, and where it runs on another that \
lacks something, its functions return {UNSUPPORTED_CPU}. What is
   called from outside, and asks, is compiled for all of them. */
#if defined(__x86_64__)
#define CT_ANY target("{_NONE}")
#define CT_API __attribute__((visibility("default"), CT_ANY))
#define CT_CPUID(leaf, part) __asm__ ("cpuid" : "=a"(r[0]), "=b"(r[1]), "=c"(r[2]), "=d"(r[3]) : "0"(leaf), "2"(part))
#define CT_TEXT(x) #x
#define CT_NEEDS(macro, bits, name) if (CT_TEXT(macro)[0] == '1' && !((bits) & 1)) return "this processor lacks " name;
__attribute__((noinline, cold, CT_ANY)) static const char *ct_Processor_lacks(void)
{{
    uint32_t r[4], most, basic, more, b7 = 0, c7 = 0, d7 = 0, a71 = 0, state = 0;
    CT_CPUID(0, 0); most = r[0];
    CT_CPUID(1, 0); basic = r[2];
    CT_CPUID(0x80000001, 0); more = r[2];
    if (most >= 7) {{ CT_CPUID(7, 0); b7 = r[1]; c7 = r[2]; d7 = r[3]; if (r[0]) {{ CT_CPUID(7, 1); a71 = r[0]; }} }}
    if (basic >> 27 & 1) __asm__ ("xgetbv" : "=a"(state) : "c"(0) : "edx"); \
         /* what the system saves of the registers */
    CT_NEEDS(__AVX__, (state & 6) == 6, "avx") CT_NEEDS(__AVX512F__, (state & 0xe6) == 0xe6, "avx512f")
{_rows()}
    return "";
}}
static int ct_Processor;                             /* 0: not asked yet; 1: it has everything; 2: it has not */
__attribute__((noinline, cold, CT_ANY)) static int ct_Processor_asked(void)
{{
    const int found = ct_Processor_lacks()[0] ? 2 : 1;
    __atomic_store_n(&ct_Processor, found, __ATOMIC_RELAXED);
    return found;
}}
#define CT_UNFIT ((__atomic_load_n(&ct_Processor, __ATOMIC_RELAXED) ?: ct_Processor_asked()) == 2)
#else
#define CT_API __attribute__((visibility("default")))
#define CT_UNFIT 0
#define ct_Processor_lacks() ""
#endif
"""
