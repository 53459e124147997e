"""`python -m daten`: the same as the `daten` command."""
from .entry import run

if __name__ == "__main__":
    run()
