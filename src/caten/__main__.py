"""`python -m caten`: the same as the `caten` command."""
from .cli.main import run

if __name__ == "__main__":
    run()
