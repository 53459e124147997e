"""Requests to fusion, `[schedule] fusion = "(keep S) (apart A B)"`: their words, and the values that they name.

    (keep S)          S is stored by one kernel, in memory of its own, and all its readers are in other ones
    (inline T)        the readers of the map T compute it
    (together A B)    A and B share a kernel, whatever the cost table says
    (apart A B)       A and B do not share a kernel
    (rows 32)         blocks of rows have 32 rows
    (whole S)         the blocks of rows with S take all keys at once
    (online S 512)    they take 512 keys at a time, with running results

A name is that of an array, a scalar or a variable of the body, or of a value of the tensor level (`v0`). Of several
values with one name, the last is meant: what the array holds in the end.
"""
from __future__ import annotations

from collections.abc import Sequence

from ..core.program import Fusion, Program, Variables
from ..core.text import flat
from ..errors import CatenError, did_you_mean, error
from ..frozen import frozen
from .values import Named, TensorProgram

VALUE, COUNT = "value", "count"                   # what the words of a request name
REQUESTS = {"keep": (VALUE,), "inline": (VALUE,), "together": (VALUE, VALUE), "apart": (VALUE, VALUE),
            "rows": (COUNT,), "whole": (VALUE,), "online": (VALUE, COUNT)}
FORMS = "(keep S), (inline T), (together A B), (apart A B), (rows 32), (whole S), (online S 512)"
MOST = 1 << 20                                    # rows or keys of a block


def is_request(words: Sequence[object]) -> bool:
    """Are these the words of a request?"""
    first, *rest = words or ("",)
    kinds = REQUESTS.get(str(first), ())
    return len(rest) == len(kinds) > 0 and all(kind is VALUE or is_count(str(word))
                                               for kind, word in zip(kinds, rest, strict=True))


def is_count(word: str) -> bool:
    """Is a word a number of rows or keys?"""
    return word.isascii() and word.isdigit() and 1 <= int(word[:9]) <= MOST and len(word) < 9


def names_in(request: Sequence[str]) -> list[str]:
    """The values that a request names."""
    word, *rest = request
    return [name for kind, name in zip(REQUESTS.get(word, ()), rest, strict=False) if kind is VALUE]


@frozen
class Requests:
    """The requests of a program, as values. `together` has the earlier value first. `online`: values and numbers of
    keys. `text`: what was written."""

    keep: frozenset[str] = frozenset()
    inline: frozenset[str] = frozenset()
    together: tuple[tuple[str, str], ...] = ()
    apart: tuple[tuple[str, str], ...] = ()
    rows: int | None = None
    whole: frozenset[str] = frozenset()
    online: tuple[tuple[str, int], ...] = ()
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
    return frozenset([called[name] for request in fact.requests for name in names_in(request) if name in called])


def kept_values(program: TensorProgram) -> frozenset[str]:
    """The values that are to be stored, with memory of their own; those that a text with kernels has, too."""
    fact = program.first(Fusion)
    if fact is None or program.opt == 0:
        return frozenset()
    called = _called(program)
    return frozenset([called.get(name, name) for word, *names in fact.requests if word == "keep" for name in names])


def _called(program: TensorProgram) -> dict[str, str]:
    """The last value of each name of the spec. The name of an output is that of what it holds after the call, which a
    variable of the body may be called, too."""
    order = {name: n for n, d in enumerate(program.definitions) for name in d.names}
    named = sorted([n for n in program.all(Named) if n.value in order], key=lambda n: order[n.value])
    return {n.name: n.value for n in named} | {o.name: o.value for o in program.outputs if o.value in order}


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
    counts: dict[str, list[int]] = {word: [] for word in REQUESTS}
    for request in fact.requests:
        word, names = request[0], names_in(request)
        if not is_request(request):
            raise refusal(program, flat(request), "it is not a request to fusion", f"the requests are {FORMS}")
        values: list[str] = []
        for name in names:
            value = name if name in order else called.get(name)
            if value is None:
                raise refusal(program, flat(request), f"'{name}' is an argument, which no kernel computes"
                              if name in program.buffers else f"there is no value '{name}'", _names_hint(program, name))
            values.append(value)
        if len(set(values)) < len(values):
            raise refusal(program, flat(request), "the two values are the same one", "name two values")
        values.sort(key=order.__getitem__)
        found[word].append(tuple(values))
        counts[word] += [int(w) for w in request[1 + len(names):]]
        text.append(((word, *values), flat(request)))
    made = Requests(frozenset([v for v, in found["keep"]]), frozenset([v for v, in found["inline"]]),
                    tuple([(a, b) for a, b in found["together"]]), tuple([(a, b) for a, b in found["apart"]]),
                    next(iter(counts["rows"]), None), frozenset([v for v, in found["whole"]]),
                    tuple([(v, n) for (v,), n in zip(found["online"], counts["online"], strict=True)]), tuple(text))
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
    for value in sorted(made.whole.intersection([v for v, _ in made.online])):
        raise refusal(program, made.written("online", value), f"{made.written('whole', value)} excludes it",
                      "leave out one of them")
    if len(set(counts["rows"])) > 1:
        raise refusal(program, f"(rows {counts['rows'][1]})", f"(rows {counts['rows'][0]}) excludes it",
                      "leave out one of them")
    return made


def _names_hint(program: TensorProgram, name: str) -> str:
    """What requests may name, the closest first."""
    variables = [v for fact in program.all(Variables) for v in fact.names]
    known = [*_called(program), *variables, *[n for d in program.definitions for n in d.names]]
    known = list(dict.fromkeys([n for n in known if n != name]))
    near = did_you_mean(name, known)
    return (f"{near} The" if near else "the") + f" values are {', '.join(known)}; caten ir shows them"


def refusal(program: Program, request: str, why: str, hint: str) -> CatenError:
    """E473 at the request."""
    return error("E473", f"{request}: {why}", program.place_of(request), hint=hint)
