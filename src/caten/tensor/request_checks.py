"""Were the requests to fusion met? If not: the rule or the read that forbids it."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import CatenError
from ..frozen import frozen
from . import boundaries as why
from .boundaries import Access, Reason, told
from .fusion_requests import Requests, refusal
from .values import Nest, Read, TensorProgram, Value, names_in_spec, operands_of

HINT = "leave it out, or change the read; caten ir shows the values, and caten schedule --explain the kernels"


@frozen
class Decided:
    """What the sweep has decided. `values`: those that kernels compute. `inlined`: those that their readers compute.
    `kept`, `apart`: why a map is not inlined, and why a value has not joined its readers. `readers`: of each value.
    `kernel`: the number of the kernel of each value; later numbers run earlier."""

    values: Mapping[str, Value]
    inlined: Mapping[str, Value]
    kept: Mapping[str, Reason]
    apart: Mapping[str, Reason]
    readers: Mapping[str, Sequence[tuple[str, Read]]]
    kernel: Mapping[str, int]


def check_requests(program: TensorProgram, requests: Requests, decided: Decided) -> None:
    """Raise CatenError E473 for a request that is not met."""
    checks = _Checks(program, requests, decided)
    checks.inlined()
    checks.together()
    checks.apart()


class _Checks:
    def __init__(self, program: TensorProgram, requests: Requests, decided: Decided) -> None:
        self.program, self.requests, self.decided = program, requests, decided
        self.names = names_in_spec(program)

    def inlined(self) -> None:
        for d in self.program.definitions:
            for name in self.requests.inline.intersection(d.names) - self.decided.inlined.keys():
                readers = [x.name for x in self.program.definitions if name in operands_of(x.value)]
                reason = self.decided.kept.get(name, why.NO_MAP)
                raise self.refusal(("inline", name), self.told(reason, name, readers[0] if readers else ""))

    def together(self) -> None:
        for a, b in self.requests.together:
            if not self.kernels_with(a) & self.kernels_with(b):
                raise self.refusal(("together", a, b), self.why_not_together(a, b))

    def apart(self) -> None:
        for a, b in self.requests.apart:
            if self.kernels_with(a) & self.kernels_with(b):
                raise self.refusal(("apart", a, b), f"{self.called(a)} is computed by its readers")

    def refusal(self, request: tuple[str, ...], reason: str) -> CatenError:
        return refusal(self.program, self.requests.written(*request), reason, HINT)

    def kernels_with(self, name: str) -> set[int]:
        """The kernels that compute a value: its own, or if its readers compute it, theirs."""
        found, stack = set[int](), [name]
        while stack:
            each = stack.pop()
            if each in self.decided.kernel:
                found.add(self.decided.kernel[each])
            elif each in self.decided.inlined:
                stack += [name for d in self.program.definitions if each in operands_of(d.value) for name in d.names]
        return found

    def why_not_together(self, a: str, b: str) -> str:
        """Why a value is not in the kernel of a later one."""
        for name in (a, b):
            if isinstance(self.decided.values.get(name), Nest):
                return f"{self.called(name)}: {why.NEST.text}"
        kernel = self.decided.kernel
        users = list(dict.fromkeys([u for u, _ in self.decided.readers.get(a, [])]))
        inside = [u for u in users if kernel.get(u) == kernel.get(b)]
        if not users:
            return f"neither of {self.called(a)} and {self.called(b)} reads the other"
        if not inside:
            readers = ", ".join([self.called(u) for u in users])
            return f"{self.called(a)} is read by {readers}, and none of them is in the kernel of {self.called(b)}"
        other = next((u for u in users if kernel[u] > kernel[b]), None)
        if other is not None:
            return (f"{self.called(other)} reads {self.called(a)}, too, and its kernel runs before that of "
                    f"{self.called(b)}")
        reason = self.decided.apart[a]
        reader = next((u for u, r in self.decided.readers[a] if isinstance(reason, Access)
                       and r.index[reason.axis] is reason.index), inside[0])
        return self.told(reason, a, reader)

    def told(self, reason: Reason, source: str, reader: str) -> str:
        return told(reason, self.called(source), self.called(reader))

    def called(self, value: str) -> str:
        """A value, with what the spec calls it."""
        return f"{value} ({self.names[value]})" if value in self.names else value
