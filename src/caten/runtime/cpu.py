"""What a CPU name stands for: the feature level behind `native`, and the machine that planners may assume."""
from __future__ import annotations

import hashlib
import platform
from functools import cache
from pathlib import Path

from ..core.program import Machine

# The x86-64 levels from the highest: what /proc/cpuinfo must show for each.
LEVELS: tuple[tuple[str, frozenset[str]], ...] = (
    ("x86_64_v4", frozenset(["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx2", "fma", "bmi1", "bmi2",
                             "f16c", "movbe"])),
    ("x86_64_v3", frozenset(["avx", "avx2", "fma", "bmi1", "bmi2", "f16c", "movbe"])),
    ("x86_64_v2", frozenset(["sse4_1", "sse4_2", "ssse3", "popcnt", "cx16"])),
)
# Vector bytes, registers, caches of a core, fused multiply-add. Typical of the level, not of one model: the same for
# every machine of that level.
MACHINES: dict[str, Machine] = {m.arch: m for m in (
    Machine("x86_64", 16, 16, (32 << 10, 256 << 10), False),
    Machine("x86_64_v2", 16, 16, (32 << 10, 256 << 10), False),
    Machine("x86_64_v3", 32, 16, (32 << 10, 512 << 10), True),
    Machine("x86_64_v4", 64, 32, (32 << 10, 1 << 20), True),
    Machine("aarch64", 16, 32, (64 << 10, 512 << 10), True),
    Machine("riscv64", 16, 32, (32 << 10, 256 << 10), True),
    Machine("wasm32", 16, 16, (32 << 10, 256 << 10), False),
)}
# CPU names by the level they have.
CPUS: dict[str, str] = {name: level for level, names in (
    ("x86_64", "core2 nocona k8 athlon64 opteron"),
    ("x86_64_v2", "nehalem westmere sandybridge ivybridge silvermont goldmont tremont bdver1 btver2 corei7 corei7-avx"),
    ("x86_64_v3", "haswell broadwell skylake alderlake raptorlake meteorlake arrowlake znver1 znver2 znver3 core-avx2 "
                  "bdver4"),
    ("x86_64_v4", "skylake-avx512 cascadelake cooperlake cannonlake icelake-client icelake-server tigerlake "
                  "rocketlake sapphirerapids graniterapids "
                  "znver4 znver5"),
) for name in names.split()}


@cache
def _info() -> str:
    """The text of /proc/cpuinfo; empty where there is none."""
    try:
        return Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return ""


def _row(*names: str) -> str:
    """What the first row of one of these names says."""
    line = next((row for row in _info().splitlines() if row.lower().startswith(names)), "")
    return line.partition(":")[2].strip()


@cache
def features() -> frozenset[str]:
    """The feature flags of this machine's CPU; empty where the system does not list them."""
    return frozenset(_row("flags", "features").split())


@cache
def vendor() -> str:
    """The vendor of this machine's CPU (`GenuineIntel`, `AuthenticAMD`); empty if the system does not tell."""
    return _row("vendor_id")


def model(info: str | None = None) -> str:
    """The CPU as the system names it; `info` is the text of /proc/cpuinfo."""
    info = _info() if info is None else info
    rows: dict[str, str] = {}
    for line in info.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            rows.setdefault(name.strip(), value.strip())
    model = rows.get("model name") or platform.processor() or platform.machine()
    numbers = [f"{name} {rows[name]}" for name in ("cpu family", "model", "stepping") if name in rows]
    return f"{model} ({', '.join(numbers)})" if numbers else model


def family() -> str:
    """The kind of CPU that this machine has: `x86_64`, `aarch64`, …"""
    name = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


def level_of(flags: frozenset[str]) -> str:
    """The highest x86-64 level whose features are all there."""
    return next((name for name, needed in LEVELS if needed <= flags), "x86_64")


def resolve(march: str) -> str:
    """The architecture level for a -march word: `native`, a level or a CPU name; `-` and `_` are the same."""
    word = march.strip().lower()
    if word == "native":
        return level_of(features()) if family() == "x86_64" else family()
    if word in CPUS:
        return CPUS[word]
    plain = word.replace("-", "_")
    if plain in MACHINES:
        return plain
    for prefix in ("armv8", "armv9", "apple", "cortex", "neoverse"):
        if plain.startswith(prefix):
            return "aarch64"
    return "riscv64" if plain.startswith("rv64") else family() if family() in MACHINES else "x86_64"


def needs_check(march: str) -> bool:
    """Does code for a -march value need more than its architecture's baseline? Only x86-64 has a check."""
    return resolve(march).startswith("x86_64") and march.strip().lower().replace("-", "_") != "x86_64"


def machine(arch: str) -> Machine:
    """What planners may assume of a resolved architecture; the least of its kind where it is not in the table."""
    return MACHINES.get(arch) or MACHINES["x86_64"].replace(arch=arch)


def machine_of(march: str) -> Machine:
    """What planners may assume of the CPU that a -march word names: its architecture's row, and how well its cores
    fetch ahead, which differs by who makes them."""
    word = march.strip().lower()
    return machine(resolve(march)).replace(fetches_ahead=vendor() == "AuthenticAMD" if word == "native"
                                           else word.startswith("znver"))


def fingerprint(march: str) -> str:
    """What `-march=` means here: the word, and for `native` a hash of what the compiler and planners will find."""
    if march != "native":
        return march
    return "native " + hashlib.sha256(" ".join([vendor(), *sorted(features())]).encode()).hexdigest()[:16]
