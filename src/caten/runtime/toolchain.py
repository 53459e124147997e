"""The host C compilers: which there are, how each wants its flags spelled, and compiling with one."""
from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

from .. import documents
from ..errors import Diagnostic, ToolError
from ..frozen import frozen
from ..options import same_meaning
from . import zig
from .installed_programs import installed
from .library_cache import PROBES, file_identity
from .linked_libraries import library_identities
from .process import Finished, run, run_together
from .protocol import UNSAFE, CompileRecord, Host, Unavailable

SUFFIXES = {"c": ".c", "s": ".s", "o": ".o", "a": ".a", "so": ".so"}
INSTALL = "install one: apt install clang (or gcc), or pip install 'caten[toolchain]'"
# The name inside the temporary folder: the same for every compilation, so that equal input gives equal bytes.
SOURCE = "library.c"
PROBE_SECONDS = 60.0
CLANGS = ("clang", *[f"clang-{n}" for n in range(40, 9, -1)])
# Flags that every compilation needs: no contraction to FMA, and integers that wrap.
EXACT = ("-std=c11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fwrapv")
OPENMP_PROBE = """int omp_get_num_threads(void);
__attribute__((visibility("default"))) int ct_probe(void)
{
    int n = 0;
    #pragma omp parallel num_threads(2)
    {
        #pragma omp single
        n = omp_get_num_threads();
    }
    return n;
}
"""
# How clang, zig and gcc refuse -march=.
UNKNOWN_CPU = re.compile(r"target CPU|unknown CPU|CPUs for architecture|-march=", re.I)
# A shared library says its name, for programs that are linked with it. The name is that of the file, which is known
# when the library leaves the cache: until then this holds the room for any.
SONAME = "caten".ljust(255, "_")
_LOAD_PROBE = ("import ctypes, sys; needed = list(map(ctypes.CDLL, sys.argv[2:])); sys.exit(0 if "
               "ctypes.CDLL(sys.argv[1]).ct_probe() == 2 else 1)")


@frozen
class Compiler:
    """A C compiler: its command, its family (`clang`, `zig`: clang in the ziglang wheel, `gcc`) and its file."""

    words: tuple[str, ...]
    family: str
    file: str

    @property
    def name(self) -> str:
        return "zig cc" if self.family == "zig" else Path(self.words[-1] if len(self.words) == 1
                                                          else self.words[0]).name

    def identity(self) -> str:
        """Changes whenever another compiler sits in its place; starts no process."""
        return file_identity(self.file)

    def march(self, word: str) -> list[str]:
        """`-march=` in this compiler's spelling."""
        if not word:
            return []
        if self.family == "zig" or not word.startswith("x86_64"):
            return ["-march=" + (word.replace("-", "_") if self.family == "zig" else word)]
        return ["-march=" + word.replace("_", "-")]

    @property
    def quiet(self) -> list[str]:
        """What keeps it from checking or warning of what is meant."""
        return {"zig": ["-fno-sanitize=undefined"], "gcc": ["-Wno-psabi"]}.get(self.family, [])

    def archiver(self) -> list[str]:
        """The words that start `ar`."""
        return [*takewhile(lambda word: word != "cc", self.words), "ar"] if self.family == "zig" else ["ar"]

    def surroundings(self, host: Host, work: Path) -> dict[str, str]:
        """The variables that it needs for one compilation in the folder `work`."""
        return zig.surroundings(host, work) if self.family == "zig" else {}

    def linking(self) -> contextlib.AbstractContextManager[None]:
        """Around a run of it that links: a notice where it is slow because it builds its own library first."""
        return zig.announced_first_use() if self.family == "zig" else contextlib.nullcontext()


# -- finding them ------------------------------------------------------------------------------------------------------

def split_words(text: str, origin: str) -> tuple[str, ...]:
    """A compiler with arguments as argument vector, `ccache gcc`; ToolError E621 on shell metacharacters."""
    if bad := sorted(UNSAFE & set(text)):
        raise ToolError(Diagnostic("E621", f"{origin} holds {bad[0]!r}, which no compiler's name does",
                                   hint="give a name or a path, and arguments"))
    return tuple(shlex.split(text))


def named(text: str, origin: str, host: Host) -> Compiler:
    """The compiler that the user asked for. Raises UsageError E916, ToolError E621, Unavailable."""
    words = split_words(text, origin)
    same_meaning(words, origin)
    found = shutil.which(words[0], path=host.path) if words else None
    if found is None:
        raise Unavailable(f"{origin} is '{text}', and there is no such program", INSTALL)
    found = os.path.abspath(found)                                        # it will be started in another folder
    if "ziglang" in words or Path(found).name == "zig":
        return Compiler((found, *words[1:]), "zig", found)
    real = Path(os.path.realpath(shutil.which(words[-1], path=host.path) or found)).name
    return Compiler((found, *words[1:]), "clang" if "clang" in Path(words[-1]).name or "clang" in real else "gcc",
                    found)


def candidates(kinds: Sequence[str], host: Host) -> list[Compiler]:
    """The installed compilers: clang and zig, newest first, then gcc. `kinds` limits the families."""
    clangs: list[tuple[int, int, Compiler]] = []
    if "clang" in kinds:
        for found in installed(CLANGS, host.path):
            version = re.search(r"(?:clang-|llvm-?)(\d+)", os.path.realpath(found))
            clangs.append((-int(version[1]) if version else 0, len(clangs), Compiler((found,), "clang", found)))
    if "zig" in kinds and (wheel := embedded()) is not None:
        clangs.append((-zig.llvm_version(Path(wheel.file)), len(clangs), wheel))
    gcc = shutil.which("gcc", path=host.path) or shutil.which("cc", path=host.path)
    ordered = [c for _, _, c in sorted(clangs, key=lambda c: c[:2])]
    return ordered + ([Compiler((gcc,), "gcc", gcc)] if gcc is not None and "gcc" in kinds else [])


def embedded() -> Compiler | None:
    """The clang inside the ziglang wheel."""
    file = zig.executable()
    return Compiler((str(file), "cc"), "zig", str(file)) if file is not None else None


def choose(cc: str | None, kinds: Sequence[str], host: Host,
           fits: Callable[[Compiler], bool] | None = None) -> Compiler:
    """`--config CC=`, else $CC, else the first of `candidates` that runs and `fits`. E610 lists those tried."""
    if cc or host.cc:
        chosen = named(cc or host.cc or "", "--config CC" if cc else "$CC", host)
        if fits is None or fits(chosen):
            return chosen
        raise Unavailable(f"{chosen.name} does not compile, link and load OpenMP",
                          f"{_openmp_package(chosen)}, or leave OMP out")
    tried = candidates(kinds, host)
    for compiler in tried:
        if runs(compiler, host) and (fits is None or fits(compiler)):
            return compiler
    looked = ", ".join([c.name for c in tried]) or f"no {' or '.join(kinds)} found"
    broken = [(f"{c.name}: {said}", None) for c in tried if (said := complaint(c, host)) is not None]
    if len(broken) == len(tried):
        why = "none that runs, tried " * bool(tried) + looked
        raise Unavailable(f"there is no C compiler ({why})", INSTALL, tuple(broken))
    if fits is not None:
        raise Unavailable(f"no C compiler here compiles, links and loads OpenMP (tried {looked})",
                          "apt install libomp-dev (clang) or gcc, or pip install 'caten[toolchain,openmp]'; OMP=0 "
                          "does without", tuple(broken))
    raise Unavailable(f"there is no C compiler ({looked})", INSTALL)


def cross(cc: str | None, kinds: Sequence[str], host: Host, fits: Callable[[Compiler], bool], target: str) -> Compiler:
    """A cross compiler: `--config CC=`, else the first of `candidates` that `fits`. $CC is for this machine."""
    if cc:
        return named(cc, "--config CC", host)
    tried = candidates(kinds, host)
    for compiler in tried:
        if runs(compiler, host) and fits(compiler):
            return compiler
    looked = f" (tried {', '.join([c.name for c in tried])})" if tried else ""
    raise Unavailable(f"no C compiler here makes programs for {target}{looked}", "pip install 'caten[toolchain]'")


def _openmp_package(compiler: Compiler) -> str:
    """How to get the OpenMP library of a compiler."""
    match compiler.family:
        case "zig":
            return "pip install 'caten[openmp]'"
        case "clang":
            version = re.search(r"(?:clang|llvm)-(\d+)", f"{compiler.name} {os.path.realpath(compiler.file)}")
            return f"apt install libomp-{version[1] + '-' if version else ''}dev"
    return "apt install libgomp1"


# -- OpenMP and other libraries ----------------------------------------------------------------------------------------

OPENMP_WHEELS = {"cmeel-libomp": "libomp", "intel-openmp": "libiomp5"}      # wheel -> its OpenMP library
# A library that is needed is looked for beside the one that needs it, and nowhere that only this machine has.
BESIDE = "-Wl,-rpath,$ORIGIN"


def openmp_flags(compiler: Compiler) -> list[str]:
    """What turns `#pragma omp` on, then what links its library; the embedded clang brings none and takes that of a
    wheel. That is found beside the result, or where the process already has it (`library`). The library of another
    compiler is named too, so that the manifest can list it. The result must stay loaded: unloading it would unmap the
    code that OpenMP's waiting threads are in."""
    stay = [] if sys.platform == "darwin" else ["-Wl,-z,nodelete"]
    if compiler.family != "zig":
        return ["-fopenmp=libomp", *stay, "-lomp"] if compiler.family == "clang" else ["-fopenmp", *stay, "-lgomp"]
    library = openmp_library()
    return ["-fopenmp", *stay, *([str(library), BESIDE] if library is not None else [])]


def library_name(word: str) -> str:
    """The library in a word of a link command: `m` of `-lm`, `iomp5` of `/opt/libiomp5.so`, else empty."""
    if word.startswith("-l"):
        return word[2:]
    return Path(word).stem.removeprefix("lib") if word.endswith((".so", ".dylib")) and not word.startswith("-") else ""


def openmp_library(needed: str = "") -> Path | None:
    """The OpenMP library of a wheel: LLVM's in cmeel-libomp, or Intel's in intel-openmp, which is larger. `needed`: a
    text that names the file, where only that one will do; the loader takes one for the other under no name."""
    import importlib.metadata  # slow to import, and only the embedded clang's OpenMP asks
    for package, stem in OPENMP_WHEELS.items():
        if needed and f"{stem}." not in needed:
            continue
        names = (f"{stem}.so", f"{stem}.dylib")
        places = [Path(sys.prefix) / "lib" / name for name in names] if package == "intel-openmp" else []
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            places += [Path(str(f.locate())).resolve() for f in importlib.metadata.files(package) or []
                       if f.name in names]
        if (found := next((p for p in places if p.is_file()), None)) is not None:
            return found
    return None


def has_openmp(compiler: Compiler, host: Host) -> bool:
    """Does a parallel region compile, link, load, and run on two threads? The cache remembers a yes."""
    flags = openmp_flags(compiler)
    return remembered(host, f"openmp {compiler.identity()} {flags} {library_identities(flags, compiler.file)}",
                      lambda: _probe(compiler, host, OPENMP_PROBE, flags, True))


def has_library(compiler: Compiler, host: Host, library: str) -> bool:
    """Can `-lLIBRARY` be linked?"""
    text = "int ct_probe(void) { return 2; }\n"
    flag = f"-l{library}"
    return remembered(host, f"library {compiler.identity()} {flag} {library_identities([flag], compiler.file)}",
                      lambda: _probe(compiler, host, text, [flag], False))


def builds(compiler: Compiler, host: Host, flags: Sequence[str], seconds: float = PROBE_SECONDS) -> bool:
    """Does a program with the C library compile and link with these flags? zig builds that library first."""
    text = ("#include <math.h>\n#include <stdio.h>\nint main(int n, char **words) { return printf(\"%g\", sin(n)) + "
            "!words; }\n")
    return remembered(host, f"program {compiler.identity()} {flags}",
                      lambda: _probe(compiler, host, text, [*flags, "-lm"], False, seconds))


def runs(compiler: Compiler, host: Host) -> bool:
    """Does it compile anything at all here?"""
    return remembered(host, _running(compiler), lambda: complaint(compiler, host) is None)


def _running(compiler: Compiler) -> str:
    return f"runs {compiler.identity()} {compiler.words}"


def complaint(compiler: Compiler, host: Host) -> str | None:
    """What a compiler says to a function of one line; None where it compiles that."""
    with temporary(host) as folder:
        (folder / SOURCE).write_text("int ct_probe(void) { return 2; }\n")
        words = [*compiler.words, *compiler.quiet, "-c", SOURCE, "-o", "probe.o"]
        try:
            done = run(words, min(host.timeout, PROBE_SECONDS), folder, environment=compiler.surroundings(host, folder))
        except ToolError as problem:
            return problem.diagnostics[0].message
        if done.status != 0:
            return f"{compiler.name} {done.reason}" + "".join([f": {line}"
                                                               for line in done.errors.strip().splitlines()[:1]])
        return None if (folder / "probe.o").is_file() else f"{compiler.name} reported success and wrote no output"


def _probe(compiler: Compiler, host: Host, text: str, flags: Sequence[str], load: bool, seconds: float = 0) -> bool:
    """`seconds`: for a program; a shared library has PROBE_SECONDS."""
    with temporary(host) as folder:
        (folder / SOURCE).write_text(text)
        shared, needed = [] if seconds else ["-fPIC", "-shared"], [w for w in flags if w.endswith((".so", ".dylib"))]
        try:
            words = [*compiler.words, "-O1", *compiler.quiet, *shared, SOURCE, "-o", "probe.so", *flags]
            done = _linked(compiler, words, seconds or min(host.timeout, PROBE_SECONDS), folder,
                           environment=compiler.surroundings(host, folder))
            loading = [sys.executable, "-c", _LOAD_PROBE, str(folder / "probe.so"), *needed]
            return done.status == 0 and (not load or run(loading, PROBE_SECONDS).status == 0)
        except ToolError:
            return False


def remembered(host: Host, question: str, ask: Callable[[], bool]) -> bool:
    """The answer to a question about a tool. A yes is kept in the cache's folder of probes under everything that it
    depends on; a no is not, because what is missing may be installed, and a disk have room, the next time."""
    file = _probe_file(host, question)
    if file is not None:
        with contextlib.suppress(OSError, ValueError):
            if documents.read(file, {"type": "object", "required": ["answer"],
                                     "properties": {"answer": {"type": "boolean"}}})["answer"]:
                return True
    answer = ask()
    if file is not None and answer:
        with contextlib.suppress(OSError):
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=file.parent)
            with os.fdopen(handle, "w") as out:
                json.dump({"question": question, "answer": answer}, out)
            os.replace(name, file)
    return answer


def _probe_file(host: Host, question: str) -> Path | None:
    return None if host.cache is None else host.cache / PROBES / (hashlib.sha256(question.encode()).hexdigest()[:32]
                                                                  + ".json")


# -- compiling ---------------------------------------------------------------------------------------------------------

@contextlib.contextmanager
def temporary(host: Host) -> Iterator[Path]:
    """A private folder that is gone afterwards. ToolError E625 where it, or something in it, cannot be written."""
    try:
        with tempfile.TemporaryDirectory(prefix="caten-", dir=host.temp, ignore_cleanup_errors=True) as folder:
            yield Path(folder)
    except OSError as problem:
        raise unwritable(problem, host.temp) from None


def unwritable(problem: OSError, folder: Path | None = None) -> ToolError:
    """There is no place for the files that a compiler reads and writes."""
    where = f" to {folder}" if folder else ""
    return ToolError(Diagnostic("E625", f"cannot write temporary files{where}: {problem.strerror or problem}",
                                hint="make room, or name other folders with TMPDIR and CATEN_CACHE_DIR"))


def commands(compiler: Compiler, flags: Sequence[str], libraries: Sequence[str], source: str, out: str, kind: str,
             link: Sequence[str] = ("-shared",), soname: str | None = None, parts: int = 1) -> list[list[str]]:
    """The commands that make `out` of a kind (`s o a so`) from a source file; `link` is what makes it one that is
    loaded, `soname` the name that it then says it has (as a rule that of the file). With `parts` the first so many
    commands of a shared library compile one part each."""
    inner = str(Path(out).with_suffix(".o"))
    match kind:
        case "so":
            name = [f"-Wl,-soname,{soname or Path(out).name}"] if "-shared" in link and sys.platform != "darwin" else []
            if "-shared" in link and (parts > 1 or compiler.family == "zig"):
                made = [str(Path(out).with_suffix(f".{n + 1}.o")) for n in range(parts)] if parts > 1 else [inner]
                parted = [[f"-DCT_PART={n + 1}"] if parts > 1 else [] for n in range(parts)]
                return [*[[*compiler.words, *flags, *part, "-c", source, "-o", file]
                          for part, file in zip(parted, made, strict=True)],
                        [*compiler.words, *linking_flags(compiler, flags), *link, *name, *made, "-o", out, *libraries]]
            return [[*compiler.words, *flags, *link, *name, source, "-o", out, *libraries]]
        case "o":
            return [[*compiler.words, *flags, "-c", source, "-o", out]]
        case "s":
            return [[*compiler.words, *flags, "-S", source, "-o", out]]
        case "a":
            return [[*compiler.words, *flags, "-c", source, "-o", inner], [*compiler.archiver(), "rcsD", out, inner]]
    raise ToolError(Diagnostic("E624", f"a C compiler makes {', '.join(SUFFIXES)}, not '{kind}'"))


def linking_flags(compiler: Compiler, flags: Sequence[str]) -> list[str]:
    """The flags of a command that only links: zig would build its own library for each CPU."""
    return [word for word in flags if not word.startswith("-march=") or compiler.family != "zig"]


def compile_c(compiler: Compiler, flags: Sequence[str], libraries: Sequence[str], text: str, out: Path, kind: str,
              host: Host,
              link: Sequence[str] = ("-shared",)) -> CompileRecord:
    """Compile C text. The work happens in a folder of its own under fixed names, and the result is moved into place
    when it is whole. ToolError E620, E622, E623 (the compiler refuses or crashes), E625 (it wrote nothing, or the
    result cannot be stored)."""
    made = "library" + SUFFIXES[kind]
    with temporary(host) as folder:
        (folder / SOURCE).write_text(text, encoding="utf-8")
        steps = commands(compiler, flags, libraries, SOURCE, made, kind, link, SONAME, host.parts)
        found = run_steps(compiler, steps, host, folder)
        result = folder / made
        if not result.is_file() or result.stat().st_size == 0:
            raise wrote_nothing(compiler)
        store(result, out)
    return record_of(compiler, found, steps, flags, libraries)


def wrote_nothing(compiler: Compiler) -> ToolError:
    """What a compiler was to make is not there."""
    return ToolError(Diagnostic("E625", f"{compiler.name} reported success and wrote no output",
                                hint="is this really a C compiler?"))


def record_of(compiler: Compiler, found: str, steps: Sequence[Sequence[str]], flags: Sequence[str],
              libraries: Sequence[str]) -> CompileRecord:
    """The record of an artifact. `found`: the compiler's version."""
    return CompileRecord(compiler.words[0], found, tuple([tuple(s) for s in steps]), tuple(flags),
                         tuple([w for w in libraries if w.startswith("-l") or w.endswith((".so", ".dylib"))]))


def run_steps(compiler: Compiler, steps: Sequence[Sequence[str]], host: Host, folder: Path, at_once: int = 0) -> str:
    """Run the commands that make an artifact, those that compile parts of it at once: the first `at_once`, or as many
    as their flags say. Returns the compiler's version. ToolError E620, E622, E623 (it refuses or crashes)."""
    environment = compiler.surroundings(host, folder)
    known: list[str] = []

    def meanwhile() -> None:
        if not known:
            if host.meanwhile is not None:
                host.meanwhile()
            known.append(version(compiler, host.timeout, environment))
    at_once = at_once or len([step for step in steps if any(word.startswith("-DCT_PART=") for word in step)])
    for done in _finished(compiler, steps, at_once, host.timeout, folder, meanwhile, environment):
        if done.status != 0:
            _must_run(compiler, host)
            said = "\n".join(first_complaints(done.errors))
            hint = ("-march= and --config MARCH= take a CPU that this compiler knows"
                    if UNKNOWN_CPU.search(said) else
                    "see whether it compiles without $CFLAGS and $LDFLAGS" if host.cflags or host.ldflags else
                    "a complaint about generated C is a fault of caten: please report it, with the source")
            raise ToolError(Diagnostic("E623", f"{compiler.name} {done.reason}" + (f":\n{said}" if said else ""),
                                       hint=hint))
    return known[0]


def _finished(compiler: Compiler, steps: Sequence[Sequence[str]], at_once: int, timeout: float, folder: Path,
              meanwhile: Callable[[], None], environment: Mapping[str, str]) -> Iterator[Finished]:
    """Run the commands that make an artifact, the first of them at once."""
    yield from run_together(steps[:at_once], timeout, folder, meanwhile, environment)
    for step in steps[at_once:]:
        if "-shared" in step:
            yield _linked(compiler, step, timeout, folder, meanwhile, environment)
        else:
            yield run(step, timeout, folder, meanwhile, environment)


def _linked(compiler: Compiler, words: Sequence[str], timeout: float, folder: Path,
            meanwhile: Callable[[], None] | None = None, environment: Mapping[str, str] | None = None) -> Finished:
    """A run that links. The embedded clang does that without its own library, if nothing is missing then: the result
    is the same, byte for byte."""
    if compiler.family == "zig" and zig.links_without_helpers(words):
        done = run([*words, *zig.WITHOUT_HELPERS], timeout, folder, meanwhile, environment)
        if done.status == 0:
            return done
    with compiler.linking():
        return run(words, timeout, folder, meanwhile, environment)


def first_complaints(errors: str, most: int = 20) -> list[str]:
    """The first lines of what a compiler says; those from its first error on, where that comes after many warnings."""
    lines = errors.strip().splitlines()
    start = next((n for n, line in enumerate(lines) if "error:" in line), 0)
    return lines[start if start >= most else 0:][:most]


def under_name(library: bytes, name: str) -> bytes:
    """A shared library that says it has this name: that of the file it is going to be."""
    room, said = SONAME.encode(), os.fsencode(name)
    return library.replace(room + b"\0", said.ljust(len(room), b"\0") + b"\0", 1) if len(said) <= len(room) else library


def _must_run(compiler: Compiler, host: Host) -> None:
    """After a failed compilation: ToolError E626 if the compiler refuses everything. Forgets the remembered yes."""
    if (said := complaint(compiler, host)) is None:
        return
    if (file := _probe_file(host, _running(compiler))) is not None:
        file.unlink(missing_ok=True)
    raise ToolError(Diagnostic("E626",
                               f"the C compiler cannot be used, it does not even compile an empty function: {said}",
                               hint="see what is wrong with it, or name another one with CC"))


def store(result: Path, out: Path) -> None:
    """Move a file to where it belongs, whole or not at all."""
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        shutil.copy(result, part)                    # with its mode: it may be a program
        os.replace(part, out)
    except OSError as problem:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise ToolError(Diagnostic("E625", f"cannot write {out}: {problem.strerror}")) from None


def version(compiler: Compiler, timeout: float = PROBE_SECONDS, environment: Mapping[str, str] | None = None) -> str:
    """The first line of `--version`, `unknown` where it says nothing in time (seconds)."""
    try:
        lines = run([*compiler.words, "--version"], min(timeout, PROBE_SECONDS),
                    environment=environment).output.strip().splitlines()
    except ToolError:
        return "unknown"
    return lines[0] if lines else "unknown"


def target_triple(compiler: Compiler, flags: Sequence[str], host: Host) -> str:
    """The target triple that it compiles for with these flags, `x86_64-unknown-linux-gnu`. ToolError E623 where it does
    not say it. The embedded clang prints one for -dumpmachine that it does not compile for; the one that it does stands
    in what -v prints."""
    with temporary(host) as folder:
        (folder / SOURCE).write_text("int ct_probe;\n")
        asked = ["-v", "-c", SOURCE, "-o", "probe.o"] if compiler.family == "zig" else ["-dumpmachine"]
        done = run([*compiler.words, *flags, *asked], min(host.timeout, PROBE_SECONDS), folder,
                   environment=compiler.surroundings(host, folder))
    found = re.search(r"^Target: (\S+)", done.errors,
                      re.M) if compiler.family == "zig" else re.search(r"^(\S+)$", done.output, re.M)
    if done.status != 0 or found is None:
        raise ToolError(Diagnostic("E623", f"{compiler.name} {done.reason} and names no target",
                                   hint="is this really a C compiler?"))
    return re.sub(r"\d+\.[\d.]+", "", found[1])                       # versions of the kernel and the C library
