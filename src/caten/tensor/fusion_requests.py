"""Requests to fusion, `[schedule] fusion = "(keep S) (apart A B)"`: their words, and the values that they name.

    (keep S)          S is stored by one kernel, in memory of its own, and all its readers are in other ones
    (inline T)        the readers of the map T compute it
    (together A B)    A and B share a kernel, whatever the cost table says
    (apart A B)       A and B do not share a kernel

A name is that of an array, a scalar or a variable of the body, or of a value of the tensor level (`v0`). Of several
values with one name, the last is meant: what the array holds in the end.
"""
from __future__ import annotations

from ..core.program import Fusion, Program
from ..core.text import flat
from ..errors import CatenError, did_you_mean, error
from ..frozen import frozen
from .values import Named, TensorProgram

REQUESTS = {"keep": 1, "inline": 1, "together": 2, "apart": 2}       # the number of names
FORMS = "(keep S), (inline T), (together A B), (apart A B)"


@frozen
class Requests:
    """The requests of a program, as values. `together` has the earlier value first. `text`: what was written."""

    keep: frozenset[str] = frozenset()
    inline: frozenset[str] = frozenset()
    together: tuple[tuple[str, str], ...] = ()
    apart: tuple[tuple[str, str], ...] = ()
    text: tuple[tuple[tuple[str, ...], str], ...] = ()

    def is_apart(self, a: str, b: str) -> bool:
        """Are two values not to share a kernel?"""
        return (a, b) in self.apart or (b, a) in self.apart

    def is_together(self, a: str, b: str) -> bool:
        """Are two values to share a kernel?"""
        return (a, b) in self.together or (b, a) in self.together

    def written(self, word: str, *names: str) -> str:
        """The request as it was written."""
        return dict(self.text)[word, *names]


NO_REQUESTS = Requests()


def values_asked_for(program: TensorProgram) -> frozenset[str]:
    """The values that requests name as the spec does. None at -O0, for there is no fusion."""
    fact = program.first(Fusion)
    if fact is None or program.opt == 0:
        return frozenset()
    called = _called(program)
    return frozenset([called[name] for _, *names in fact.requests for name in names if name in called])


def kept_values(program: TensorProgram) -> frozenset[str]:
    """The values that are to be stored, with memory of their own; those that a text with kernels has, too."""
    fact = program.first(Fusion)
    if fact is None or program.opt == 0:
        return frozenset()
    called = _called(program)
    return frozenset([called.get(name, name) for word, *names in fact.requests if word == "keep" for name in names])


def _called(program: TensorProgram) -> dict[str, str]:
    """The last value of each name of the spec."""
    order = {name: n for n, d in enumerate(program.definitions) for name in d.names}
    named = sorted([n for n in program.all(Named) if n.value in order], key=lambda n: order[n.value])
    return {n.name: n.value for n in named}


def requests_of(program: TensorProgram) -> Requests:
    """The requests with the names of values. Raises CatenError E473 for a word or name that is not known, and for
    requests that exclude each other. At -O0 there is no fusion, and there are no requests."""
    fact = program.first(Fusion)
    if fact is None or program.opt == 0:
        return NO_REQUESTS
    order = {name: n for n, d in enumerate(program.definitions) for name in d.names}
    called = _called(program)
    found: dict[str, list[tuple[str, ...]]] = {word: [] for word in REQUESTS}
    text: list[tuple[tuple[str, ...], str]] = []
    for request in fact.requests:
        word, *names = request
        if REQUESTS.get(word) != len(names):
            raise refusal(program, flat(request), "it is not a request to fusion", f"the requests are {FORMS}")
        values: list[str] = []
        for name in names:
            value = name if name in order else called.get(name)
            if value is None:
                known = [*called, *order]
                raise refusal(program, flat(request), f"there is no value '{name}'", did_you_mean(name, known)
                              or f"the values are {', '.join(known)}; caten ir shows them")
            values.append(value)
        if len(set(values)) < len(values):
            raise refusal(program, flat(request), "the two values are the same one", "name two values")
        values.sort(key=order.__getitem__)
        found[word].append(tuple(values))
        text.append(((word, *values), flat(request)))
    made = Requests(frozenset([v for v, in found["keep"]]), frozenset([v for v, in found["inline"]]),
                    tuple([(a, b) for a, b in found["together"]]), tuple([(a, b) for a, b in found["apart"]]),
                    tuple(text))
    for value in sorted(made.keep & made.inline):
        raise refusal(program, made.written("inline", value), f"{made.written('keep', value)} excludes it",
                      "leave out one of them")
    for pair in made.together:
        if pair in made.apart:
            raise refusal(program, made.written("together", *pair), f"{made.written('apart', *pair)} excludes it",
                          "leave out one of them")
        if kept := made.keep & set(pair[:1]):
            raise refusal(program, made.written("together", *pair), f"{made.written('keep', *kept)} excludes it",
                          "leave out one of them")
    return made


def refusal(program: Program, request: str, why: str, hint: str) -> CatenError:
    """E473 at the request."""
    return error("E473", f"{request}: {why}", program.place_of(request), hint=hint)
