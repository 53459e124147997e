"""Install the peers, the extra `bench` of pyproject.toml, one by one: one that cannot be installed is reported and left out."""
from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def main() -> None:
    wanted = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]["bench"]
    for package in wanted:
        if subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", package]).returncode:
            print(f"{package} cannot be installed: the side-by-side runs without it", file=sys.stderr)


if __name__ == "__main__":
    main()
