"""`python -m daten`: the same as the `daten` command."""
from .cli import main

if __name__ == "__main__":
    main()
