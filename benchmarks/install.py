"""Install the peers, the extra `bench` of pyproject.toml, one by one: one that cannot be installed is reported and
left out."""
from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
# Where a package is asked for first: torch for the CPU alone is a tenth of the one with CUDA.
FIRST = {"torch": ["--retries", "0", "--index-url", "https://download.pytorch.org/whl/cpu"]}


def main() -> None:
    wanted = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]["bench"]
    for package in wanted:
        if not (package in FIRST and installed(package, FIRST[package], quiet=True)) and not installed(package):
            print(f"{package} cannot be installed: the side-by-side runs without it", file=sys.stderr)


def installed(package: str, options: list[str] | None = None, quiet: bool = False) -> bool:
    """Could it be installed? What pip complains about is shown, unless there is another try."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", *(options or []), package]
    return subprocess.run(command, stderr=subprocess.DEVNULL if quiet else None).returncode == 0


if __name__ == "__main__":
    main()
