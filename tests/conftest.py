"""Options and fixtures of the whole suite."""
from __future__ import annotations

import atexit
import gc
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from caten import api, api_runs, cores
from caten.collector import COLLECTIONS
from caten.functions.op_function import op
from caten.runtime import discover, library_cache, zig
from caten.runtime.protocol import Host, Runtime
from daten import settings

OF_VALUES = frozenset(("daten", "frontend", "functions", "gradients", "ops", "tensor", "testing"))
OF_BEHAVIOUR = frozenset(("cli", "compat", "conformance", "graphs", "kernels", "loop", "runtime", "schedule"))     # and the files of no folder
QUICK = frozenset(("core", "frontend", "loop", "schedule", "tensor"))         # the folders of `make quick`
REFUSES = {"compilers": False}          # may the test that runs not start a host compiler?
COMPILERS = frozenset(("cc", "gcc", "clang", "zig", "c++", "g++", "nvcc"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nightly", action="store_true", help="run every random net at its full count")
    parser.addoption("--no-compilers", action="store_true", help="a test that starts a host compiler fails, as those of `make quick` always do")
    parser.addoption("--update-goldens", action="store_true", help="write what came out over the expected texts")


def pytest_configure(config: pytest.Config) -> None:
    """Programs under test start in half the time when they find their byte code; it goes into pytest's cache, whatever the environment says. The
    library that the embedded clang builds for itself, which takes minutes for all targets, stays in the user's cache: every checkout finds it."""
    gc.set_threshold(*COLLECTIONS)
    sys.addaudithook(refuse_compilers)
    if "PYTEST_XDIST_WORKER" in os.environ:        # the other cores have workers of their own, which processes that help one would only delay
        cores.available = lambda: 1
    os.environ["CATEN_STRICT"] = "1"               # what a user's build would go on after fails a test
    if (cache := getattr(config, "cache", None)) is not None:                # None: -p no:cacheprovider
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(cache.mkdir("bytecode"))
    if zig.OWN_LIBRARY not in os.environ:
        host = Host(cache=library_cache.default_directory(os.environ.get("CATEN_CACHE_DIR")))
        os.environ[zig.OWN_LIBRARY] = zig.surroundings(host, Path())[zig.OWN_LIBRARY]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The processes that a test has started, in order."""
    found: list[subprocess.Popen[bytes]] = []
    whole = subprocess.Popen

    def popen(*given: Any, **named: Any) -> Any:
        found.append(whole(*given, **named))
        return found[-1]
    monkeypatch.setattr(subprocess, "Popen", popen)
    return found


def refuse_compilers(event: str, arguments: tuple[Any, ...]) -> None:
    if REFUSES["compilers"] and event == "subprocess.Popen" and (name := Path(os.fsdecode(arguments[0])).name).split("-")[0] in COMPILERS:
        raise AssertionError(f"starts {name}: mark the test as slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without --nightly: no tests of `nightly`, and of those with a mark `slice(n)` each n-th of their cases. A test that is named on the command line is run."""
    if config.getoption("--nightly") or any("::" in arg for arg in config.args):
        return
    numbers: dict[str, int] = {}
    late = []
    for item in items:
        mark, test = item.get_closest_marker("slice"), item.nodeid.split("[")[0]
        number = numbers[test] = numbers.get(test, -1) + 1
        if item.get_closest_marker("nightly") or (mark is not None and number % mark.args[0]):
            late.append(item)
    left = set(late)
    items[:] = [item for item in items if item not in left] if late else items
    config.hook.pytest_deselected(items=late)


def pytest_collection_finish() -> None:
    """Twelve thousand tests are millions of objects, which are there to the end: where a test looks for garbage it need not look at them, at half a
    second each time."""
    gc.freeze()


@cache
def empty_cache() -> str:
    """A cache of tests that start no host compiler: what others have compiled would hide that they would."""
    folder = tempfile.mkdtemp(prefix="caten-quick-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


LOWERED: list[bool] = []                                                  # was the last test compiled at -O1?


@cache
def host_runtimes() -> tuple[type[Runtime], ...]:
    """The classes of the runtimes whose C compiler's level is lowered by day."""
    return discover.base("clang"), discover.base("gcc")


def refuses(item: pytest.Item, folder: str) -> bool:
    """May a test not start a host compiler? So whoever adds one to the folders of `make quick` marks it."""
    config = item.config
    quick = folder in QUICK and item.get_closest_marker("slow") is None and not config.getoption("--nightly")
    return quick or bool(config.getoption("--no-compilers"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """By day, what is about values is compiled as it is written, in a third of the time: by caten at -O1, by clang and gcc at -O0, unless a test
    says otherwise; what is about behaviour (options, caches, reports) and the scheduler by clang and gcc at -O0. The nets of tests/nets, and the nightly runs, compile
    as users do; so do tests marked `scheduled`, but for the -O0."""
    folder = item.path.relative_to(Path(__file__).parent).parts[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(REFUSES, "compilers", refuses(item, folder))
        if REFUSES["compilers"]:
            patch.setenv("CATEN_CACHE_DIR", empty_cache())
        is_lowered = folder in OF_VALUES and item.get_closest_marker("scheduled") is None and not item.config.getoption("--nightly")
        if [is_lowered] != LOWERED:
            LOWERED[:] = [is_lowered]
            for forget in settings._FORGOTTEN:                              # what daten keeps of the level before
                forget()
        if (folder in OF_VALUES | OF_BEHAVIOUR or folder.endswith(".py")) and not item.config.getoption("--nightly"):
            for kind in host_runtimes():
                patch.setattr(kind, "config", {**kind.config, "OPT": replace(kind.config["OPT"], default=0)})
            if is_lowered:
                for function in (api.compile, api_runs.test):
                    given = [p for p in signature(function).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is not p.empty]
                    patch.setattr(function, "__defaults__", tuple([1 if p.name == "opt" else p.default for p in given]))
                patch.setitem(op.__kwdefaults__, "opt", 1)
                patch.setattr(settings, "_CURRENT", [replace(settings.options(), opt=1)])      # before the other: it keeps what it finds
                patch.setattr(settings, "options_of", lambda name, **given: api.options_of(name, **{"opt": 1, **given}))
        return (yield)


@pytest.fixture
def nightly(request: pytest.FixtureRequest) -> bool:
    """Are the nets to run at their full counts?"""
    return bool(request.config.getoption("--nightly"))


@pytest.fixture
def update_goldens(request: pytest.FixtureRequest) -> bool:
    """Are expected texts to be written instead of compared?"""
    return bool(request.config.getoption("--update-goldens"))


@pytest.fixture
def tool() -> Callable[[str], str]:
    """`tool("gcc")`: the path of a program, or the test is skipped and the program is named at the end of the run."""
    def need(name: str) -> str:
        path = shutil.which(name)
        if path is None:
            pytest.skip(f"needs {name}")
        return path
    return need


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons: dict[str, int] = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        reasons[reason] = reasons.get(reason, 0) + 1
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"not run: {count} tests: {reason}", yellow=True)
