"""Prepare the raw command line for click: expand @file, and split single-dash options as gcc does."""
from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator

from ..errors import Diagnostic, UsageError, did_you_mean

# Single-dash options with a value, attached (`-DM=1`) or separate (`-D M=1`). Longer ones first: `-MFx` is not `-M`.
VALUED = ("-MF", "-MT", "-o", "-i", "-r", "-d", "-t", "-s", "-x", "-D", "-I", "-l", "-L", "-W", "-j")
# Single-dash options of several letters that stand alone, and those that take `=VALUE`.
FLAGS = ("-MD", "-MP", "-fopenmp", "-fno-openmp", "-fno-bounds-check", "-fbounds-check", "-freassociate",
         "-fno-reassociate", "-frewrite", "-fno-rewrite", "-###")
EQUALS = ("-march", "-fstrided")
LEVELS = ("-O0", "-O1", "-O2", "-O3")            # or as two words, `-O 0`
LETTERS = ("-E", "-S", "-c", "-g", "-v", "-w", "-h")

# gcc option -> the options of caten for it: a library is position-independent and shared anyway, and -g has one level.
SPELLED = {
    "-fPIC": (), "-fpic": (), "-shared": (), "-MMD": ("-MD",), "-g1": ("-g",), "-g2": ("-g",), "-g3": ("-g",),
    "-ggdb": ("-g",),
    "-save-temps": ("--save-temps",), "-dumpmachine": ("--print=target",), "-dumpversion": ("--print=version",),
    "-dumpfullversion": ("--print=version",),
}
# gcc option that is refused -> the hint.
INSTEAD = {
    "-std=": "the C text is C11; $CFLAGS reaches the C compiler",
    "-ansi": "the C text is C11",
    "-pipe": "omit it",
    "-g0": "omit -g",
    "-static": "-o NAME.a makes a static library",
    "-pthread": "-fopenmp runs loops on several threads",
    "-ffast-math": "results would depend on the C compiler; a schedule may reassociate sums, visibly",
    "-fno-associative-math": "-fno-reassociate keeps float sums in the order in which they are written",
    "-Ofast": "there is no fast-math; the levels are -O0, -O1, -O2 and -O3",
    "-mtune=": "-march= chooses the CPU",
    "-isystem": "-I DIR adds a folder to search for includes",
    "-iquote": "-I DIR adds a folder to search for includes",
    "-include": 'include = ["other.toml"] in the spec',
    "-Wl,": "$LDFLAGS, -l and -L reach the linker",
    "-Wa,": "$CFLAGS reaches the C compiler",
    "-Wp,": "$CFLAGS reaches the C compiler",
    "-MM": "-MD writes a depfile beside the output",
    "-U": "omit the -D",
}

MAX_RESPONSE_DEPTH = 16
MAX_RESPONSE_BYTES = 1 << 24


def normalise(argv: Iterable[str]) -> list[str]:
    """The command line in a form that click parses: every single-dash option is separated from its value. Words after
    `--` stay as they are."""
    out: list[str] = []
    words = deque(_expand(argv, 0))
    while words:
        word = words.popleft()
        if word == "--":
            return [*out, word, *words]
        if not word.startswith("-") or word.startswith("--") or word == "-" or _is_number(word):
            out.append(word)
        elif word in VALUED:
            out.append(word)
            if words:                                         # a value may look like an option: `-o -`, `-t -1`
                out.append(words.popleft())
        elif word == "-O" and words and f"-O{words[0]}" in LEVELS:
            out += [word, words.popleft()]
        else:
            out.extend(_single_dash(word))
    return out


def _single_dash(word: str) -> list[str]:
    if word == "-O":                                          # as in gcc: without a level it is -O1
        return ["-O", "1"]
    if word in LEVELS:
        return ["-O", word[2:]]
    if word in FLAGS or word in LETTERS:
        return [word]
    if word in SPELLED:
        return list(SPELLED[word])
    if (known := next((prefix for prefix in INSTEAD if word.startswith(prefix)), None)) is not None:
        raise UsageError(Diagnostic("E901", f"{word} is an option of C compilers, not of caten", hint=INSTEAD[known]))
    name, equals, value = word.partition("=")
    if name in EQUALS and equals:
        return [f"{name}={value}"]
    for option in VALUED:
        if word.startswith(option):
            return [option, word[len(option):]]
    hint = did_you_mean(name, (*FLAGS, *EQUALS, *LEVELS))
    if word.startswith("-O"):
        hint = "the levels are -O0, -O1, -O2 and -O3"
    elif word.startswith("-f"):
        hint = hint or "the -f options are " + ", ".join([f for f in (*FLAGS, "-fstrided=NAME") if f.startswith("-f")])
    elif name in EQUALS:
        hint = f"write {name}=VALUE"
    raise UsageError(Diagnostic("E901", f"unknown option '{word}'", hint=hint or "caten --help lists the options"))


def _is_number(word: str) -> bool:
    return word[1:].replace(".", "", 1).isdigit()


def _expand(argv: Iterable[str], depth: int) -> Iterator[str]:
    """Replace every `@file` by the words in the file. If there is no such file, the word stays, as in gcc."""
    for word in argv:
        if not word.startswith("@") or len(word) == 1 or not os.path.isfile(word[1:]):
            yield word
            continue
        if depth >= MAX_RESPONSE_DEPTH:
            raise UsageError(Diagnostic("E908", f"{word} is nested deeper than {MAX_RESPONSE_DEPTH} files",
                                        hint="does a response file name itself?"))
        try:
            with open(word[1:], "rb") as stream:
                data = stream.read(MAX_RESPONSE_BYTES + 1)
            text = data.decode("utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8 text"
            raise UsageError(Diagnostic("E908", f"cannot read {word}: {reason}")) from None
        if len(data) > MAX_RESPONSE_BYTES:
            raise UsageError(Diagnostic("E908", f"{word} is larger than {MAX_RESPONSE_BYTES >> 20} MiB"))
        if "\0" in text:                                      # neither process arguments nor file names can contain it
            raise UsageError(Diagnostic("E908", f"{word} contains a NUL character"))
        yield from _expand(split_words(text), depth + 1)


def split_words(text: str) -> list[str]:
    """The words of a response file, separated by white space; quotes and backslashes work as in gcc."""
    words: list[str] = []
    current: list[str] | None = None
    quote = ""
    chars = iter(text)
    for c in chars:
        if c == "\\":
            current = (current or []) + [next(chars, "")]
        elif quote:
            if c == quote:
                quote = ""
            elif current is not None:
                current.append(c)
        elif c in "\"'":
            quote, current = c, current or []
        elif c.isspace():
            if current is not None:
                words.append("".join(current))
            current = None
        else:
            current = [*(current or []), c]
    if quote:
        raise UsageError(Diagnostic("E908", f"a response file ends inside a {quote} quote"))
    return words if current is None else [*words, "".join(current)]
