"""Spec files: read them within limits, and find those that another one names."""
from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path

from ..core.text import place_in
from ..errors import Diagnostic, Place, UsageError, error
from ..frozen import frozen

STDIN = "<stdin>"
MAX_BYTES = 16 << 20
RULES = Path(__file__).resolve().parent.parent / "rules"            # rules of [rewrite] for specs to include


@frozen
class SpecText:
    """A spec: its name (a path, or `<stdin>`), its text, and its language, `toml` or `lisp` (`(composite …)`).
    `places`: where parts of it come from, if it was made of something else: by path, maps of offsets to positions."""

    name: str
    text: str
    lang: str = "toml"
    is_main: bool = True                       # it is no file that another spec includes or calls
    places: Mapping[tuple[str | int, ...], Callable[[int], Place]] = field(default_factory=dict, compare=False,
                                                                           repr=False)

    def at(self, offset: int) -> Place:
        return place_in(self.text, offset, self.name)


def language_of(text: str) -> str:
    """`toml` or `lisp`: only `(composite …)` starts with a parenthesis (after `;` comments)."""
    lines = (line.strip() for line in text.splitlines())
    return "lisp" if next((line for line in lines if line and not line.startswith(";")), "").startswith("(") else "toml"


def read_file(path: str | Path) -> SpecText:
    """The spec in a file; `-` is standard input. Raises UsageError if it cannot be read."""
    name = STDIN if str(path) == "-" else str(path)
    try:
        if name == STDIN:
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with open(path, "rb") as stream:
                data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise UsageError(Diagnostic("E001", f"cannot read {shown(name)}: {reason}")) from None
    return decode(name, data)


def decode(name: str, data: bytes) -> SpecText:
    """The bytes of a spec as text: UTF-8 without a byte order mark and without NUL, at most MAX_BYTES long."""
    if len(data) > MAX_BYTES:
        raise error("E002", f"{shown(name)} is larger than {MAX_BYTES >> 20} MiB", Place(name, 1, 1))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as problem:
        before = data[:problem.start].decode("utf-8")
        line = data[data.rfind(b"\n", 0, problem.start) + 1:].split(b"\n", 1)[0].decode("utf-8", "replace")
        place = place_in(before, len(before), name)
        raise error("E003", f"byte 0x{data[problem.start]:02x} is not UTF-8",
                    Place(name, place.line, place.column, line), hint="save the file as UTF-8") from None
    if name == STDIN and not text.strip():
        raise error("E001", "stdin is empty", hint="did the command before this one fail?")
    spec = SpecText(name, text.replace("\r\n", "\n"), language_of(text))
    check_text(spec)
    return spec


def check_text(spec: SpecText) -> None:
    """Check the limits of a text from any source."""
    if len(spec.text) > MAX_BYTES:
        raise error("E002", f"{shown(spec.name)} is larger than {MAX_BYTES >> 20} MiB", Place(spec.name, 1, 1))
    if spec.text.startswith("\ufeff"):
        raise error("E003", "the file starts with a byte order mark", spec.at(0), hint="save it as UTF-8 without one")
    if (nul := spec.text.find("\0")) >= 0:
        raise error("E003", "a NUL byte: this is not a text file", spec.at(nul))


def inside(name: str, spec_name: str, include_dirs: tuple[str, ...]) -> Path | None:
    """The file that a spec names: below the spec's own folder, one of `include_dirs` or the rules that come with caten,
    never outside them; or None."""
    if "\0" in name or Path(name).is_absolute():
        return None
    for folder in (Path(spec_name).parent, *map(Path, include_dirs), RULES):
        root, found = folder.resolve(), (folder / name).resolve()
        if found.is_relative_to(root) and found.is_file():
            return folder / name
    return None


def shown(text: str, limit: int = 60) -> str:
    """Untrusted text, safe to print: quoted, control characters escaped, cut to `limit` characters."""
    clean = "".join([c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text[:limit + 1]])
    return f"'{clean[:limit]}…'" if len(clean) > limit else f"'{clean}'"
