"""Call a compiled operator with arrays. The arguments are checked, and arrays that the kernel cannot use in place are
copied; an error names the argument.

From the second call on, arguments that need no preparation go to the kernel directly, by the function `direct` in the
library. This module is the slow path for all other calls."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..calls import array_arguments
from ..calls.call_arguments import CallArguments, Prepared, keyword_sizes
from ..calls.call_signature import OUT, Argument, argument
from ..errors import CatenError, did_you_mean
from .library import Entry, Library
from .manifest import Manifest, operators
from .pickled_library import pickled, restored

if TYPE_CHECKING:
    import inspect


class Own(Protocol):
    """The source and manifest of a spec under its own names, computed on first use; its library has other names."""

    @property
    def manifest(self) -> Manifest: ...

    @property
    def source(self) -> str: ...


class Operator:
    """A compiled operator: `gemm(A, B, C)`.

    Pass arrays and scalars in the order of the spec's `inputs`, by position or by name. Sizes that do not follow from
    an array shape are keyword arguments. An output that is also an input is updated in place. Any other output is
    allocated, unless you pass it: by position after the inputs, by its name, or in `out=` (one array, a tuple in the
    order of the outputs, or a dict by name). Returns the outputs: one array, or a tuple in the order of the spec's
    `outputs`.

    Raises CatenError: E700 to E710 for wrong arguments, E711 for a failed check, E713 for wrong or overlapping outputs,
    E714 for an array outside main memory; and OutOfMemory (E712).

    Several threads may call an operator at once. An operator does not change: a copy of it is the operator itself. A
    pickle of it contains its library."""

    def __init__(self, library: Library, op: Manifest, source: str = ""):
        self.name: str = op["op"]
        self._op, self._source = op, source
        self._own: Own | None = None
        self._copied_from: Operator | None = None
        self.__name__ = self.__qualname__ = self.name
        self._entry: Entry = library.entries[self.name]
        self._ffi = library.ffi
        self._library = library                                    # keeps it loaded
        self._arguments = CallArguments(op)
        self._keywords = keyword_sizes(self._arguments)
        self.__doc__ = self._document()

    # ---- description

    def says(self, source: str, own: Own | None = None) -> None:
        """Set the source text, and with `own` the source and manifest under the names of another spec."""
        self._source, self._own = source, own

    @property
    def said(self) -> tuple[str, Own | None]:
        """The arguments of the last call of `says`."""
        return self._source, self._own

    @property
    def manifest(self) -> Manifest:
        """The manifest of the operator, as `caten --emit=manifest` writes it."""
        return self._op if self._own is None else next(op for op in operators(self._own.manifest)
                                                       if op["op"] == self.name)

    @property
    def source(self) -> str:
        """The generated source; for most runtimes it is C."""
        return self._source if self._own is None else self._own.source

    @property
    def schedule(self) -> str:
        """The schedule of the kernel, as text: that of the autoscheduler, or the given one."""
        return str(self.manifest["schedule"])

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The arrays and scalars: the inputs in the order of the spec, then the outputs that are not inputs."""
        return tuple([argument(a) for a in self._arguments.leading])

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs, in the order in which a call returns them."""
        return tuple(self._op["outputs"])

    @property
    def sizes(self) -> tuple[str, ...]:
        """The names of the sizes."""
        return tuple(self._arguments.sizes)

    @property
    def signature(self) -> str:
        """The name, the declarations as in the spec, and the names of the outputs: `Scale(x{f32}[N]) -> y`."""
        returned = self._op["outputs"]
        declared = self._op.get("signature") or [f"{a['name']}: {array_arguments.describe(a)}"
                                                 for a in self._arguments.leading]
        return f"{self.name}({', '.join(declared)}) -> {', '.join(returned)}"

    @property
    def __signature__(self) -> inspect.Signature:
        import inspect
        kinds, arguments = inspect.Parameter, self._arguments
        rows = [kinds(a["name"], kinds.POSITIONAL_OR_KEYWORD) for a in arguments.inputs]
        rows += [kinds(a["name"], kinds.POSITIONAL_OR_KEYWORD, default=None) for a in arguments.outs]
        rows += [kinds(n, kinds.KEYWORD_ONLY) for n in self._keywords]
        if arguments.takes_out and OUT not in [row.name for row in rows]:
            rows.append(kinds(OUT, kinds.KEYWORD_ONLY, default=None))
        return inspect.Signature(rows)

    def _document(self) -> str:
        lines = [self._op.get("documentation", ""), "", self.signature, ""]
        for a in self._arguments.leading:
            kind = array_arguments.describe(a) if a["kind"] == "tensor" else a["dtype"]
            lines.append(f"{a['name']}: {kind}, {a['direction']}")
        lines += [f"{n}: size, by keyword" for n in self._keywords]
        return "\n".join(lines).strip()

    def __repr__(self) -> str:
        return f"<caten operator {self.signature}>"

    # ---- copies

    def copied(self, name: str, source: str, own: Own | None) -> Operator:
        """A copy of this operator for the same library, with this source and manifest. `name` is its name."""
        made = Operator(self._library, self._op)
        made.says(source, own)
        made._copied_from = self                                   # a process remembers it for as long as it has copies
        return made

    def __copy__(self) -> Operator:
        return self

    def __deepcopy__(self, memo: Any) -> Operator:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (pickled(self._library), self.name, (self._source, self._own))

    # ---- calling

    def __new__(cls, *_: Any) -> Operator:
        """Every operator has a class of its own: Python looks up `__call__` there, and the first call replaces it."""
        kind: Any = type(cls.__name__, (cls,), {})
        made: Operator = super().__new__(kind)
        return made

    def __call__(self, *given: Any, **named: Any) -> Any:
        try:
            result = self._called(*self._arguments.arranged(given, named))
        except CatenError as problem:
            raise problem.shortened() from None
        kind: Any = type(self)
        kind.__call__ = self.attached(self._call) or self._call
        return result

    def attached(self, long_way: Callable[..., Any]) -> Callable[..., Any] | None:
        """A function that calls the kernel directly with arguments that need no preparation, and otherwise calls
        `long_way`; None if the library has no such function."""
        from .cpython_loader import attached  # it imports ctypes, and most libraries of a build are not called
        return attached(self._library, self._op, long_way, self._fail)

    def bind(self, *given: Any, **named: Any) -> Callable[[], Any]:
        """Bind these arguments: returns a function without arguments that runs the operator on the same arrays each
        time and returns the outputs. Outputs that are not given are allocated once. The elements of the arrays may
        change between calls, but not their shapes and addresses. Raises the same errors as a call."""
        try:
            values, sizes = self._arguments.arranged(given, named)
            prepared = self._arguments.prepare(values, sizes)
        except CatenError as problem:
            raise problem.shortened() from None
        if prepared.copies:                                                  # every call makes them anew
            return lambda: self._called(values, sizes)
        call, tail = self._entry.call, prepared.tail
        arguments, returned = (*self._pointers(prepared), *tail), self._arguments.returned(prepared.originals)

        def bound(_alive: Any = prepared.work) -> Any:
            code = call(*arguments)
            if code:
                raise self._arguments.failure(code, prepared.sizes, self._check)
            return returned
        return bound

    # ---- the slow path

    def _call(self, *given: Any, **named: Any) -> Any:
        try:
            return self._called(*self._arguments.arranged(given, named))
        except CatenError as problem:
            raise problem.shortened() from None

    def _fail(self, code: int, *given: Any, **named: Any) -> None:
        """Raise the error for a result of the kernel that is not 0."""
        try:
            prepared = self._arguments.prepare(*self._arguments.arranged(given, named))
            raise self._arguments.failure(code, prepared.sizes, self._check)
        except CatenError as problem:
            raise problem.shortened() from None

    def _called(self, values: Sequence[Any], sizes: Mapping[str, int]) -> Any:
        prepared = self._arguments.prepare(values, sizes)
        code = self._entry.call(*self._pointers(prepared), *prepared.tail)
        return self._arguments.finished(prepared, code, self._check)

    def _pointers(self, prepared: Prepared) -> list[Any]:
        """The scalars, and the addresses of the arrays."""
        scalars, cast = self._arguments.convert, self._ffi.cast
        return [v if i in scalars else cast("char *", v.ctypes.data) for i, v in enumerate(prepared.work)]

    def _check(self, row: int) -> str:
        """The text of a failed check."""
        texts = {} if self._own is None else {check["row"]: str(check["text"]) for check in self.manifest["checks"]}
        return texts.get(row) or self._entry.check(row)


class Operators(Mapping[str, Operator]):
    """The operators of a library, by attribute and by name: `ops.Gemm`, `ops["Gemm"]`. A library has at least one."""

    def __init__(self, library: Library, source: str = "", found: Sequence[Operator] = ()):
        """`found`: the operators, if they exist already."""
        self._library, self._manifest = library, library.manifest
        self._own: Own | None = None
        self._copied_from: Operators | None = None
        self._found = {op.name: op for op in found
                       or [Operator(library, op, source) for op in operators(library.manifest)]}

    def says(self, source: str, own: Own | None = None) -> None:
        """As `Operator.says`, for all operators."""
        self._own = own
        for operator in self._found.values():
            operator.says(source, own)

    @classmethod
    def of(cls, operator: Operator) -> Operators:
        """An `Operators` with this one operator."""
        made = cls(operator._library, found=[operator])
        made._own = operator._own
        return made

    @property
    def manifest(self) -> Manifest:
        """The manifest of the library."""
        return self._manifest if self._own is None else self._own.manifest

    def copied(self, name: str, source: str, own: Own | None) -> Operator | Operators:
        """As `Operator.copied`: a copy of the operator with this name, or of all operators if `name` is empty."""
        if name:
            return self[name].copied(name, source, own)
        made = Operators(self._library)
        made.says(source, own)
        made._copied_from = self
        return made

    def __copy__(self) -> Operators:
        return self

    def __deepcopy__(self, memo: Any) -> Operators:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        one = "ops" not in self._library.manifest                  # the library of one operator
        said = next(iter(self._found.values()))._source, self._own
        return (Operators.of, (next(iter(self._found.values())),)) if one else (restored,
                                                                                (pickled(self._library), "", said))

    def __getattr__(self, name: str) -> Operator:
        try:
            found: Operator = self.__dict__["_found"][name]
            return found
        except KeyError:
            hint = did_you_mean(name, list(self.__dict__.get("_found", ())))
            raise AttributeError(f"this library has no operator {name}" + (f"; {hint}" if hint else "")) from None

    def __getitem__(self, name: str) -> Operator:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._found]

    def __repr__(self) -> str:
        return f"<caten operators {', '.join(self._found)}>"


def callables(library: Library, source: str = "") -> Operator | Operators:
    """The operator of a library, or an `Operators` if it has several."""
    return Operator(library, operators(library.manifest)[0],
                    source) if "ops" not in library.manifest else Operators(library, source)


def library_of(operators: Operator | Operators) -> Library:
    """The loaded library that an operator or an `Operators` calls."""
    return operators._library
