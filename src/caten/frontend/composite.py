"""One operator as the user declared it: what the signature says, with the body still as text.

Both spellings of a spec (TOML and the one-line form) end here; frontend.body reads the text and lowers it to statements.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from ..core.expr import Expr
from ..core.program import Fact
from ..errors import CatenError, Diagnostic, Place
from ..frozen import frozen


@frozen
class Declared:
    """A tensor of the signature. `name` is a C identifier (`x-size` is `x_size`), `shape` is arithmetic over sizes of type i64, `order`
    lists the axes from slowest to fastest, `access` is `in`, `out` or `inout`; `text` is the declaration as written, at `place`."""

    name: str
    dtype: str
    shape: tuple[Expr, ...]
    order: tuple[int, ...]
    access: str
    text: str
    place: Place | None = None
    grad: bool = False

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def scalar(self) -> bool:
        """Is it passed by value (a tensor of rank 0 that is only read)? Every other tensor is a buffer, of shape () where its rank is 0."""
        return not self.shape and self.access == "in"


@frozen
class Composite:
    """A declared operator and the text of its body.

    `tensors`: the inputs in order, then the outputs that are no inputs. `sizes`: in the order of first appearance, which is their order as C
    arguments. `conditions`: what the where-clauses and requirements ask of the sizes. `where` turns an offset in `code` into a place in the
    spec's file.
    """

    name: str
    tensors: tuple[Declared, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    sizes: tuple[str, ...]
    conditions: tuple[Expr, ...]
    code: str
    lang: str
    where: Callable[[int], Place]
    name_place: Place
    file: str = "<text>"
    doc: str = ""
    facts: tuple[Fact, ...] = ()

    def tensor(self, name: str) -> Declared | None:
        """The declaration of exactly this name."""
        return next((t for t in self.tensors if t.name == name), None)

    @property
    def names(self) -> tuple[str, ...]:
        """Every declared name: tensors, then sizes."""
        return (*[t.name for t in self.tensors], *self.sizes)


class Refused(CatenError):
    """Some composites of a text were refused, those called `names`; the others are `declared`, and their bodies can still be checked."""

    def __init__(self, problems: Sequence[Diagnostic], names: Iterable[str], declared: Sequence[Composite]):
        super().__init__(*problems)
        self.names = frozenset([fold(name) for name in names])
        self.declared = declared


@lru_cache(maxsize=4096)
def fold(name: str) -> str:
    """What two spellings of one name share: `K_H`, `k_h` and `k-h` are the same name to a Lisp body."""
    return name.lower().replace("-", "_")


def named(written: str, known: Iterable[str]) -> str | None:
    """Which of these names is meant: the same, else one that differs in how it is spelled only. None where there is none."""
    names = list(known)
    return written if written in names else next((name for name in names if fold(name) == fold(written)), None)
