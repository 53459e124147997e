"""The kernels of a large C file in parts that a compiler can make at once, on several cores. With the macro CT_PART = n
the file is part n alone; without it, it is the whole, as any other."""
from __future__ import annotations

import re
from collections.abc import Sequence

LEAST = 40_000                   # characters of a part: a compiler reads the functions in front of it in each
MOST = 16
COUNT = re.compile(r"^#define CT_PARTS (\d+)$", re.MULTILINE)
FIRST, END = "#if CT_IN_PART(1)\n", "#endif\n"
_HEAD = """/* {count} parts, which a compiler can make at once: with -DCT_PART=1 to -DCT_PART={count}, to be linked. */
#define CT_PARTS {count}
#ifdef CT_PART
#define CT_KERNEL __attribute__((visibility("hidden")))
#define CT_IN_PART(n) (CT_PART == (n))
#else
#define CT_KERNEL static
#define CT_IN_PART(n) 1
#endif
"""


def count(text: str) -> int:
    """In how many parts a file can be compiled."""
    found = COUNT.search(text)
    return int(found[1]) if found else 1


def apart(kernels: Sequence[str], entries: Sequence[str]) -> str | None:
    """Functions of kernels, and the entry points that call them, in parts; the entry points are in the first. None if
    they are too small for that."""
    size = sum(map(len, kernels))
    number = min(size // LEAST, MOST, len(kernels))
    if number < 2:
        return None
    parts: list[list[str]] = [[] for _ in range(number)]
    before = 0
    for kernel in kernels:
        parts[before * number // size].append("CT_KERNEL" + kernel.removeprefix("static"))
        before += len(kernel)
    parts = [part for part in parts if part]
    declared = "".join([kernel.partition("\n{")[0] + ";\n" for part in parts for kernel in part])
    texts = [f"#if CT_IN_PART({n})\n" + "\n".join(part) + END for n, part in enumerate(parts, 1)]
    return "\n".join([_HEAD.format(count=len(parts)), *texts, f"#ifdef CT_PART\n{declared}{END}",
                      FIRST + "\n".join(entries) + END])


def trailing(source: str, trailer: str) -> str:
    """What follows a file: in its first part."""
    return f"{FIRST}{trailer}{END}" if trailer and count(source) > 1 else trailer
