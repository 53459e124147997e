"""`python -m caten`: the same as the `caten` command."""
from . import early_interrupt as early_interrupt  # before the folder of commands is looked for
from .cli.main import run

if __name__ == "__main__":
    run()
