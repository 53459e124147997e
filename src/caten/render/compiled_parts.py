"""The kernels of a large C file in parts that a compiler can make at once, on several cores. With the macro CT_PART = n
the file is part n alone; without it, it is the whole, as any other.

Each kernel has its key in front of it: a hash of its text and of the helper functions that it calls. So an object file
with a kernel of the same key can serve in the place of its text (`only`)."""
from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from ..frozen import frozen

T = TypeVar("T")
LEAST = 20_000                   # characters of a part: a compiler reads the functions in front of it in each
MOST = 16
COUNT = re.compile(r"^#define CT_PARTS (\d+)$", re.MULTILINE)
ENTRIES, END = "#if CT_ENTRIES\n", "#endif\n"
_HEAD = """/* {count} parts, which a compiler can make at once: with -DCT_PART=1 to -DCT_PART={count}, to be linked. */
#define CT_PARTS {count}
#ifdef CT_PART
#define CT_KERNEL __attribute__((visibility("hidden")))
#define CT_IN_PART(n) (CT_PART == (n))
#else
#define CT_KERNEL static
#define CT_IN_PART(n) 1
#endif
#define CT_ENTRIES CT_IN_PART(1)
"""
# Two object files may have the same kernel, where two processes made them at once.
_HEAD_OF_SOME = """#define CT_PART
#define CT_KERNEL __attribute__((visibility("hidden"), weak))
#define CT_IN_PART(n) 1
#define CT_ENTRIES {entries}
"""
_WHOLE_HEAD = re.compile(r"^/\* \d+ parts, .*?^#define CT_ENTRIES .*?\n", re.MULTILINE | re.DOTALL)
_KERNEL = re.compile(r"^/\* kernel ([0-9a-f]+) \*/\n(CT_KERNEL \w+ (\w+)\(.*?^}\n)", re.MULTILINE | re.DOTALL)
_WORD = re.compile(r"\w+")


@frozen
class Kernel:
    """A kernel of a file in parts: its key, the name of its function, and its text."""

    key: str
    name: str
    text: str


def count(text: str) -> int:
    """In how many parts a file can be compiled."""
    found = COUNT.search(text)
    return int(found[1]) if found else 1


def apart(kernels: Sequence[str], entries: Sequence[str], key: Callable[[str, Mapping[str, str]], str]) -> str | None:
    """Functions of kernels, and the entry points that call them, in parts; the entry points are in the first. None if
    they are too small for that. `key`: of a function, with the keys of those before it, which it may call."""
    parts = divided(kernels, len, MOST)
    if len(parts) < 2:
        return None
    keys: dict[str, str] = {}
    for kernel in kernels:
        keys[_name(kernel)] = key(kernel, keys)
    declared = "".join([_declared(kernel.partition("\n{")[0]) + ";\n" for part in parts for kernel in part])
    texts = [f"#if CT_IN_PART({n})\n" + "\n".join([f"/* kernel {keys[_name(k)]} */\n{_declared(k)}" for k in part])
             + END for n, part in enumerate(parts, 1)]
    return "\n".join([_HEAD.format(count=len(parts)), f"#ifdef CT_PART\n{declared}{END}", *texts,
                      ENTRIES + "\n".join(entries) + END])


def divided(kernels: Sequence[T], length: Callable[[T], int], most: int) -> list[list[T]]:
    """Kernels in so many parts of about the same length, in order; each part has LEAST characters, if there are as
    many."""
    size = sum(map(length, kernels))
    number = max(1, min(size // LEAST, most))
    parts: list[list[T]] = [[] for _ in range(number)]
    before = 0
    for kernel in kernels:
        parts[(2 * before + length(kernel)) * number // (2 * size)].append(kernel)
        before += length(kernel)
    return [part for part in parts if part]


def _declared(function: str) -> str:
    return "CT_KERNEL" + function.removeprefix("static")


def _name(function: str) -> str:
    return function.partition("(")[0].split()[-1]


def key_of(function: str, helpers: Mapping[str, str], called: Mapping[str, str]) -> str:
    """The key of a kernel: a hash of its text without its name, and of the texts of the helpers that it needs. The
    functions `called` stand in it by their keys."""
    head, _, body = function.partition("(")
    needed: set[str] = set()
    todo = [body]
    while todo:
        words = set(_WORD.findall(todo.pop()))
        if not called.keys().isdisjoint(words):
            body = _WORD.sub(lambda found: called.get(found[0], found[0]), body)
        words = {w for w in words if w in helpers} - needed
        needed |= words
        todo += [helpers[w] for w in words]
    digest = hashlib.sha256("\0".join([head.split()[-2], body, *[helpers[n] for n in sorted(needed)]]).encode())
    return digest.hexdigest()[:32]


def kernels_in(text: str) -> tuple[Kernel, ...]:
    """The kernels of a file in parts."""
    return tuple([Kernel(key, name, function) for key, function, name in _KERNEL.findall(text)])


def only(text: str, kept: Collection[Kernel], entries: bool) -> str:
    """A file in parts with some of its kernels, which have their keys as names, and with or without its entry points.
    All kernels are declared."""
    names = "".join([f"#define {k.name} ct_{k.key}\n" for k in kernels_in(text)])
    left = {k.key for k in kept}

    def once(found: re.Match[str]) -> str:
        if found[1] not in left:
            return ""
        left.remove(found[1])                               # another one with this key is the same
        return found[0]
    text = _KERNEL.sub(once, text)
    return _WHOLE_HEAD.sub(lambda found: _HEAD_OF_SOME.format(entries=int(entries)) + names, text, count=1)


def trailing(source: str, trailer: str) -> str:
    """What follows a file: in its first part."""
    return f"{ENTRIES}{trailer}{END}" if trailer and count(source) > 1 else trailer
