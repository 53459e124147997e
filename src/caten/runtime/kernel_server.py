"""Kernels in a process of their own: the C program around them, and the calls that go to it over pipes.

The program stays for any number of calls. A crash of it is an error of that call (E715); the next call starts it anew.
"""
from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from ..bindings.cpython import C_TYPES
from ..errors import CatenError, Diagnostic, ToolError, error, out_of_memory
from . import copied_calls
from .copied_calls import Call, scalar_bytes
from .library import Library
from .manifest import operators

SWITCH = "CT_SERVER"                     # without this macro there are only the functions
FLAGS = (f"-D{SWITCH}", "-D_POSIX_C_SOURCE=200809L")         # what compiles the program
SLOT, WORD = 16, 8                       # bytes of an argument in a request, and of a result
NO_ROOM = 16                             # exit status: this and the number of the argument


def program(manifest: Mapping[str, Any]) -> str:
    """The C text to put after that of a library: a program that serves calls of its functions."""
    ops = operators(manifest)
    kinds = ["".join(["v" if a["kind"] != "tensor" else "r" if a["direction"] == "in" else "w"
                      for a in op["arguments"]]) for op in ops]
    calls = []
    for n, op in enumerate(ops):
        passed = [f"(void *)memory[{i}]" if a["kind"] == "tensor"
                  else f"*(const {C_TYPES[a['dtype']]} *)slots[{i}].bytes"
                  for i, a in enumerate(op["arguments"])]
        calls.append(f"static int32_t ct_call_{n}(const ct_slot *slots, char *const "
                     f"*memory)\n{{\n    (void)slots; (void)memory;\n"
                     f"    return {op['symbols']['call']}({', '.join(passed)});\n}}\n")
    listed = ", ".join([f'"{k}"' for k in kinds])
    tables = [f"enum {{ CT_MOST = {max(1, *map(len, kinds))} }};",
              f"static const char *const ct_kinds[] = {{{listed}}};",
              "typedef union { int64_t length; unsigned char bytes[16]; } ct_slot;", *calls,
              "static int32_t (*const ct_calls[])(const ct_slot *, char *const *) = "
              f"{{{', '.join([f'ct_call_{n}' for n in range(len(ops))])}}};"]
    return "\n".join(["", f"#ifdef {SWITCH}", *tables, _text(), "#endif", ""])


@cache
def _text() -> str:
    return resources.files("caten.runtime").joinpath("server.c").read_text("utf-8")


def serve(command: Sequence[str], artifact: Path, manifest: Mapping[str, Any]) -> Library:
    """A library whose functions the program runs that `command` starts."""
    server = Server(command)
    return copied_calls.library(artifact, manifest, lambda number, op: lambda call: server.call(number, call))


class Server:
    """The server program, started by the first call. Threads wait for each other; a forked process starts its own."""

    def __init__(self, command: Sequence[str]):
        self._command = list(command)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def call(self, number: int, call: Call) -> int:
        """The function's result. E715 if the program crashed, E712 if an argument does not fit its memory."""
        # A fork: the lock may be held by a thread that is not here, the pipes are another's.
        if self._owner != os.getpid():
            self._lock, self._process, self._owner = threading.Lock(), None, os.getpid()
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._start()
            process = self._process
            assert process is not None
            try:
                return self._exchange(process, number, call)
            except (EOFError, BrokenPipeError):
                self._process = None
                raise self._ended(process, call) from None
            # Ctrl-C among them: what the program is at is not known any more.
            except BaseException:
                self._process = None
                _end(process)
                raise

    def _start(self) -> None:
        self._said = tempfile.TemporaryFile()                # noqa: SIM115   # open as long as the program runs
        try:
            process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said,
                                       bufsize=0,
                                       start_new_session=True)
        except OSError as problem:
            raise ToolError(Diagnostic("E620", f"cannot run {self._command[0]}: {problem.strerror}",
                                       hint="is it still installed?")) from None
        self._process = process
        weakref.finalize(self, _end, process, os.getpid())

    @staticmethod
    def _exchange(process: subprocess.Popen[bytes], number: int, call: Call) -> int:
        packed = call.packed()
        head = [scalar_bytes(number, "i64")]
        for a in packed.arguments:
            tensor = a["kind"] == "tensor"
            slot = scalar_bytes(packed.bytes[a["name"]].nbytes,
                                "i64") if tensor else scalar_bytes(packed.numbers[a["name"]], a["dtype"])
            head.append(slot.ljust(SLOT, b"\0"))
        _send(process, b"".join(head))
        for content in packed.bytes.values():
            _send(process, content.data)
        answer = bytearray(WORD)
        _receive(process, memoryview(answer))
        result = int.from_bytes(answer, "little", signed=True)
        if result == 0:
            for a in packed.arguments:
                if a["kind"] == "tensor" and a["direction"] != "in":
                    _receive(process, packed.bytes[a["name"]].data)
            packed.unpack()
        return result

    def _ended(self, process: subprocess.Popen[bytes], call: Call) -> CatenError:
        """Why there was no answer."""
        status = process.wait()
        if status >= NO_ROOM:
            argument = call.op["arguments"][status - NO_ROOM]["name"]
            return out_of_memory(call.op["op"],
                                 f"{argument} does not fit the memory of the process that runs the kernel")
        name = f"exit status {status}"
        with contextlib.suppress(ValueError):
            name = signal.Signals(-status).name if status < 0 else name
        self._said.seek(0)
        said = self._said.read(2000).decode("utf-8", "replace").strip()
        notes = tuple([(line, None) for line in said.split("\n") if line])
        return error("E715", f"{call.op['op']}: the kernel crashed ({name})", notes=notes)


def _send(process: subprocess.Popen[bytes], content: bytes | memoryview) -> None:
    assert process.stdin is not None
    left = memoryview(content)
    while left:
        left = left[process.stdin.write(left):]


def _receive(process: subprocess.Popen[bytes], into: memoryview) -> None:
    assert isinstance(process.stdout, io.RawIOBase)          # the pipe is unbuffered
    while into:
        got = process.stdout.readinto(into)
        if not got:
            raise EOFError
        into = into[got:]


def _end(process: subprocess.Popen[bytes], owner: int | None = None) -> None:
    """End the program and close its pipes; in a fork of the process that started it, only the latter."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    if owner in (None, os.getpid()):
        process.kill()
        process.wait()
