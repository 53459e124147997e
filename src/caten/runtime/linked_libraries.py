"""The library files of a link command. Their identities belong to cache keys, because a build depends on them."""
from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from .library_cache import file_identity

SYSTEM = ("/usr/local/lib", "/usr/lib", "/usr/lib64", f"/usr/lib/{os.uname().machine}-linux-gnu", "/opt/homebrew/lib")
SUFFIXES = (".so", ".dylib", ".a")


def library_identities(words: Sequence[str], compiler: str = "") -> list[str]:
    """The identities of libraries named by path or as `-lNAME` (not the C library's own `-lm`), from `-L` folders,
    those of the file `compiler`, and the system's.

    No process is started to ask the linker, so every candidate counts, not only the first one found."""
    folders = [word[2:] or after for word, after in zip(words, (*words[1:], ""), strict=False) if word.startswith("-L")]
    found: list[str] = []
    for word in words:
        if os.path.isabs(word):
            found.append(word)
        elif word.startswith("-l") and word != "-lm":
            names = [word[3:]] if word.startswith("-l:") else [f"lib{word[2:]}{suffix}" for suffix in SUFFIXES]
            found += [os.path.join(folder, name) for folder in (*folders, *system_folders(compiler)) for name in names]
    return list(dict.fromkeys([file_identity(file) for file in found if os.path.isfile(file)]))


def system_folders(compiler: str = "") -> list[str]:
    """Folders in which a linker searches for libraries. `compiler`: the file of the C compiler."""
    if not compiler:
        return list(SYSTEM)
    own = Path(os.path.realpath(compiler)).parent.parent / "lib"
    return [str(own), *sorted(map(str, own.glob("gcc/*/*"))), *SYSTEM]
