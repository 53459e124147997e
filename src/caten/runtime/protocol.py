"""What a runtime is: tables of spellings and capabilities, options, and the few methods the driver calls.

A runtime file defines one subclass of `Runtime`. `discover.find` makes an instance; `configure` returns another with
the user's options applied. Instances never change after that, and nothing here reads the environment: what comes from
it arrives in `Host`."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

from ..core.program import Machine
from ..errors import Diagnostic, ToolError, UsageError, did_you_mean
from ..frozen import frozen
from ..loop.statements import LoopProgram

API_VERSION = 1
# What an option's value may not hold: a shell never sees them, but a value that needs them is a mistake or an attack.
UNSAFE = frozenset("`$;|&<>(){}[]*?!\\\"'\n\r\t\0")


@frozen
class Option:
    """One key of `--config`; `default` is its value where the user gives none."""

    default: Any
    help: str = ""

    def read(self, text: str) -> Any:
        """The value that the user's text spells; ValueError(what was expected)."""
        return text

    def describe(self) -> str:
        """What may be given, for a message."""
        return "a word"


@frozen
class Text(Option):
    """Any text without shell metacharacters."""

    def read(self, text: str) -> str:
        if bad := sorted(UNSAFE & set(text)):
            raise ValueError(f"{self.describe()}; it holds {bad[0]!r}")
        return text

    def describe(self) -> str:
        return "plain text without shell metacharacters"


@frozen
class Flag(Option):
    """`1` or `0`."""

    def read(self, text: str) -> bool:
        word = text.strip().lower()
        if word not in ("0", "1", "true", "false", "on", "off", "yes", "no"):
            raise ValueError(self.describe())
        return word in ("1", "true", "on", "yes")

    def describe(self) -> str:
        return "0 or 1"


@frozen
class Choice(Option):
    """One of a few values."""

    of: tuple[Any, ...] = ()

    def read(self, text: str) -> Any:
        for value in self.of:
            if str(value).lower() == text.strip().lower():
                return value
        raise ValueError(self.describe())

    def describe(self) -> str:
        return "one of " + ", ".join(str(v) for v in self.of)


@frozen
class Int(Option):
    """An integer in [least, greatest]."""

    least: int = 1
    greatest: int = 1 << 31

    def read(self, text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ValueError(self.describe()) from None
        if not self.least <= value <= self.greatest:
            raise ValueError(self.describe())
        return value

    def describe(self) -> str:
        return f"an integer from {self.least} to {self.greatest}"


class Unavailable(ToolError):
    """The runtime cannot be used on this machine; the message says what to install."""

    def __init__(self, message: str, hint: str | None = None, notes: tuple[tuple[str, None], ...] = ()):
        super().__init__(Diagnostic("E610", message, hint=hint, notes=notes))


@frozen
class Host:
    """The environment: tools and flags, limits, and the folder that remembers probes."""

    cc: str | None = None                        # $CC
    cflags: tuple[str, ...] = ()                 # $CFLAGS, then -I -D of the command line
    ldflags: tuple[str, ...] = ()                # $LDFLAGS, then -L -l
    path: str | None = None                      # $PATH (None: the process's own)
    temp: Path | None = None                     # $TMPDIR
    timeout: float = 120.0                       # --cc-timeout: seconds for one run of a tool
    cache: Path | None = None                    # the cache's folder (None: nothing is remembered)
    debug: bool = False                          # -g: debug information in what is compiled
    parts: int = 1                               # in how many the text can be compiled at once (-DCT_PART=n)
    reuses: bool = False                         # kernels may be those of other libraries, as object files
    # To be called once a compiler has been started; what it raises ends the compiler.
    meanwhile: Callable[[], None] | None = None


@frozen
class CompileRecord:
    """How an artifact was made: compiler path and version, commands (argument vectors), flags, needed libraries."""

    compiler: str
    version: str
    commands: tuple[tuple[str, ...], ...]
    flags: tuple[str, ...]
    libraries: tuple[str, ...] = ()


class Runtime(ABC):
    """Base of every runtime. Subclasses fill the tables and the methods."""

    api_version: ClassVar[int] = API_VERSION
    name: ClassVar[str] = ""
    description: ClassVar[str] = ""
    config: ClassVar[Mapping[str, Option]] = {}
    types: ClassVar[Mapping[str, str]] = {}      # element type -> its spelling; one that is absent is not supported
    ops: ClassVar[Mapping[str, Any]] = {}        # operator -> its spelling; one that is absent is decomposed
    marks: ClassVar[Mapping[str, Any]] = {}      # loop mark -> its spelling; what a schedule may use
    suffixes: ClassVar[Mapping[str, str]] = {}   # product kind (c so o s a …) -> file suffix; what can be made
    denormals: ClassVar[bool] = True             # are floats below the least normal number kept?
    # Known faults: a pattern of `caten test-runtime --filter` -> the reason.
    skips: ClassVar[Mapping[str, str]] = {}
    # Do its functions allocate their scratch memory? Else the caller gives it: there is only ct_NAME_ws.
    allocates: ClassVar[bool] = True
    calls_c: ClassVar[bool] = False              # can its kernels call C functions that it is linked with?
    # Rules for values, as [[rewrite]] tables of a spec.
    rewrites: ClassVar[str] = ""
    file: Path | None = None                     # the runtime file, set by discover

    def __init__(self, settings: Mapping[str, Any] | None = None, host: Host | None = None):
        self.settings: dict[str, Any] = {k: o.default for k, o in self.config.items()} | dict(settings or {})
        self.host = host or Host()

    def configure(self, config: tuple[tuple[str, str], ...] = (), host: Host | None = None) -> Self:
        """This runtime with options as text; keys in any case. UsageError E600/E601 lists all bad keys and values."""
        known = {k.upper(): k for k in self.config}
        problems: list[Diagnostic] = []
        settings = dict(self.settings)
        for key, text in config:
            name = known.get(key.strip().upper())
            if name is None:
                listing = f"{self.name} knows " + (", ".join(self.config) or "no options")
                meant = did_you_mean(key, list(self.config))
                problems.append(Diagnostic("E600", f"runtime {self.name} has no option {key!r}", hint=meant or listing,
                                           notes=((listing, None),) if meant else ()))
                continue
            try:
                settings[name] = self.config[name].read(text)
            except ValueError as expected:
                problems.append(Diagnostic("E601", f"--config {name}={text}: expected {expected}"))
        if problems:
            raise UsageError(*problems)
        new = type(self)(settings, host or self.host)
        new.file = self.file
        return new

    @property
    def fast(self) -> bool:
        """Do elementary functions use fewer operations, less exact and 0 below twice the least normal number?"""
        return self.settings.get("MATH") == "fast"

    def hosted(self, **changes: Any) -> Self:
        """This runtime with some fields of its `host` changed."""
        return self.configure((), replace(self.host, **changes))

    @abstractmethod
    def machine(self) -> Machine:
        """What planners may know of the target: from the options, never from load or thread count."""

    @abstractmethod
    def available(self) -> None:
        """Returns when kernels can be compiled and run here; raises `Unavailable` or another ToolError otherwise."""

    @abstractmethod
    def render(self, *programs: LoopProgram) -> str:
        """The source text of one program, or of a library of several. Pure: same programs and options, same text."""

    def trailer(self, manifest: Mapping[str, Any]) -> str:
        """Text for the compiler that `source` omits: the manifest, or a program around the kernels."""
        return ""

    def commands(self, source: Path, out: Path, kind: str) -> list[list[str]]:
        """The commands (argument vectors) to make `out` from a source file; `kind`: a key of `suffixes`."""
        return []

    @abstractmethod
    def compile(self, source: str, out: Path, kind: str) -> CompileRecord:
        """Make `out` from the source text. ToolError when the tool is missing, fails or hangs."""

    def identity(self) -> str:
        """A text that changes whenever equal sources may give other artifacts: tool, flags, CPU. Starts no process."""
        return f"{self.name} {self.api_version} {sorted(self.settings.items())}"

    @abstractmethod
    def load(self, artifact: Path, manifest: Mapping[str, Any]) -> Any:
        """What calls the artifact."""
