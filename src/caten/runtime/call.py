"""Calling a compiled operator with arrays: what is given is checked, copied where the kernel cannot work on it, and named where it is wrong.

From the second call on, arrays that need none of this go to the kernel directly (`direct`); what is here is the long way, for all others.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..core.expr import Expr
from ..core.size_formula import evaluate, formula, names
from ..core.size_inference import determined, dimensions, equations, sizes_of
from ..errors import CatenError, did_you_mean, error
from ..frozen import frozen
from . import array_arguments, scalar_arguments
from .call_signature import Argument, CallSignature, argument
from .library import Entry, Library
from .manifest import Manifest, operators
from .pickled_library import pickled, restored

if TYPE_CHECKING:
    import inspect

OUT_OF_MEMORY = -1
MOST_SHAPES = 512              # whose sizes are remembered: a caller that never repeats a shape must not fill the memory


class Own(Protocol):
    """What a spec is rendered to under its own names, for operators whose library was made under others; found when it is asked for."""

    @property
    def manifest(self) -> Manifest: ...

    @property
    def source(self) -> str: ...


class Operator:
    """A compiled operator: `gemm(A, B, C)`.

    Arrays and scalars are given in the order of the spec's `inputs`, by position or by name; sizes that no shape determines by name. Outputs among
    the inputs are updated in place. Any other output is allocated, unless it is given: by position after the inputs, by its name, or in `out=` (one
    array, a tuple in the order of the outputs, or a dict by name). The outputs are returned: one array, or a tuple in the order of the spec's
    `outputs`. Raises CatenError E70x for arguments that do not fit, E711 for a failed check, and OutOfMemory. May be called from many threads at
    once. An operator does not change: copies of it are the operator itself. It can be pickled, with its library.
    """

    def __init__(self, library: Library, op: Manifest, source: str = ""):
        self.name: str = op["op"]
        self._op, self._source = op, source
        self._own: Own | None = None
        self._copied_from: Operator | None = None
        self.__name__ = self.__qualname__ = self.name
        self._entry: Entry = library.entries[self.name]
        self._ffi = library.ffi
        self._library = library                                    # keeps it loaded
        self._signature = CallSignature(op)
        arguments = op["arguments"]
        self._inputs, self._leading, self._sizes = self._signature.inputs, self._signature.leading, self._signature.sizes
        self._dims = dimensions(arguments)
        self._equations = equations(op["conditions"])
        self._binds = {n: (v, "as compiled") for n, v in op.get("binds", {}).items()}
        self._scratch: Expr = formula(op["scratch_bytes"])
        self._convert = {i: scalar_arguments.scalar(a, self.name) for i, a in enumerate(self._inputs) if a["kind"] == "scalar"}
        self._arrays_at = [i for i, a in enumerate(self._leading) if a["kind"] == "tensor"]
        self._written = [i for i in self._arrays_at if self._leading[i]["direction"] != "in"]
        self._returns = [i for n in op["outputs"] for i in self._written if self._leading[i]["name"] == n]
        self._solved: dict[Any, _Solved] = {}
        self._run = self._entry.call
        mentioned = {n for pair in self._equations for side in pair for n in names(side)}
        self._numbers = {i: a["name"] for i, a in enumerate(self._inputs) if a["kind"] == "scalar" and a["name"] in mentioned}
        inputs = {a["name"] for a in self._inputs}
        free = determined([d for d in self._dims if d.array in inputs], self._equations, [*self._binds, *self._numbers.values()])
        self._keywords = [n for n in self._sizes if n not in free]
        self.__doc__ = self._document()

    # ---- what it says of itself

    def says(self, source: str, own: Own | None = None) -> None:
        """Its source text; with `own` all that the manifest does not have right because the library was made from a spec with other names."""
        self._source, self._own = source, own

    @property
    def manifest(self) -> Manifest:
        """What a library says of the operator, as `caten --emit=manifest` writes it."""
        return self._op if self._own is None else next(op for op in operators(self._own.manifest) if op["op"] == self.name)

    @property
    def source(self) -> str:
        """The text that the spec is rendered to."""
        return self._source if self._own is None else self._own.source

    @property
    def schedule(self) -> str:
        """The schedule that was found for the spec, or given."""
        return str(self.manifest["schedule"])

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The arrays and scalars: the inputs in the order of the spec, then the outputs that are no inputs."""
        return tuple([argument(a) for a in self._leading])

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs, in the order in which a call returns them."""
        return tuple(self._op["outputs"])

    @property
    def sizes(self) -> tuple[str, ...]:
        """The names of the sizes."""
        return tuple(self._sizes)

    @property
    def signature(self) -> str:
        """The declarations as the spec has them, and what is returned."""
        returned = self._op["outputs"]
        declared = self._op.get("signature") or [f"{a['name']}: {array_arguments.describe(a)}" for a in self._leading]
        return f"{self.name}({', '.join(declared)}) -> {', '.join(returned)}"

    @property
    def __signature__(self) -> inspect.Signature:
        return self._signature.of_python(self._keywords)

    def _document(self) -> str:
        lines = [self._op.get("documentation", ""), "", self.signature, ""]
        lines += [f"{a['name']}: {array_arguments.describe(a) if a['kind'] == 'tensor' else a['dtype']}, {a['direction']}" for a in self._leading]
        lines += [f"{n}: size, by keyword" for n in self._keywords]
        return "\n".join(lines).strip()

    def __repr__(self) -> str:
        return f"<caten operator {self.signature}>"

    # ---- copies

    def copied(self, name: str, source: str, own: Own | None) -> Operator:
        """Another operator of the same library, which says this of itself. `name` is its name."""
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
        """Every operator is of a class of its own, because Python looks for `__call__` in the class: the second call finds another way there."""
        return super().__new__(type(cls.__name__, (cls,), {}))

    def __call__(self, *given: Any, **named: Any) -> Any:
        try:
            result = self._called(*self._arrange(given, named))
        except CatenError as problem:
            raise problem.shortened() from None
        from .cpython_loader import attached  # it imports ctypes, and most libraries of a build are not called
        type(self).__call__ = attached(self._library, self._op, self._call, self._fail) or self._call  # type: ignore[method-assign]
        return result

    def bind(self, *given: Any, **named: Any) -> Callable[[], Any]:
        """The call with these arguments, to be repeated: a function without arguments that always works on the same arrays (outputs that are not
        given are allocated once). Contents may change between calls; shapes, and where the arrays lie, may not."""
        try:
            values, sizes = self._arrange(given, named)
            prepared = self._prepare(values, sizes)
        except CatenError as problem:
            raise problem.shortened() from None
        if prepared.copies:                                                  # every call makes them anew
            return lambda: self._called(values, sizes)
        call, pointers, tail, failure = self._run, prepared.pointers, prepared.tail, self._failure
        arguments, returned = (*pointers, *tail), self._returned(prepared.originals)
        keep = prepared.work

        def bound(_alive: Any = keep) -> Any:
            code = call(*arguments)
            if code:
                raise failure(code, tail)
            return returned
        return bound

    def _returned(self, work: Sequence[Any]) -> Any:
        returns = self._returns
        return work[returns[0]] if len(returns) == 1 else tuple([work[i] for i in returns])

    # ---- the long way

    def _call(self, *given: Any, **named: Any) -> Any:
        try:
            return self._called(*self._arrange(given, named))
        except CatenError as problem:
            raise problem.shortened() from None

    def _fail(self, code: int, *given: Any, **named: Any) -> None:
        """What a result of the kernel other than 0 means is raised."""
        try:
            raise self._failure(code, self._prepare(*self._arrange(given, named)).tail)
        except CatenError as problem:
            raise problem.shortened() from None

    def _arrange(self, given: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Any], dict[str, int]]:
        return self._signature.arranged(given, named)

    def _prepare(self, values: Sequence[Any], sizes: Mapping[str, int]) -> _Prepared:
        """Check everything, allocate the outputs that are None, and copy what the kernel cannot work on where it lies."""
        leading, inputs = self._leading, len(self._inputs)
        originals: list[Any] = list(values)
        missing = [i for i in self._arrays_at if i >= inputs and values[i] is None]
        there = [i for i in self._arrays_at if i not in missing] if missing else self._arrays_at
        work: list[Any] = [None if i in missing else convert(v) if (convert := self._convert.get(i))
                           else array_arguments.as_array(v, leading[i], self.name) for i, v in enumerate(values)]
        for i in there:
            array_arguments.check(work[i], leading[i], self.name)
        shapes = {leading[i]["name"]: work[i].shape for i in there}
        solved = self._solve(shapes, sizes, {name: int(work[i]) for i, name in self._numbers.items()})
        for i in missing:
            work[i] = originals[i] = array_arguments.empty(solved.new[leading[i]["name"]], leading[i], self.name)
        whole = list(work)
        self._outputs_are_apart(work)
        for i in self._arrays_at:
            if not array_arguments.fits(work[i], leading[i]):
                work[i] = array_arguments.copy(work[i], leading[i], self.name)
        for out in self._written:
            for i in self._arrays_at:
                if i not in self._written and array_arguments.overlap(work[out], work[i]):
                    work[i] = array_arguments.copy(work[i], leading[i], self.name)
        strides = [s for i in self._arrays_at for s in array_arguments.stride_values(work[i], leading[i])]
        pointers = [work[i] if i in self._convert else self._ffi.cast("char *", work[i].ctypes.data) for i in range(len(work))]
        copies = tuple([(i in self._written, whole[i], work[i], leading[i]) for i in self._arrays_at if work[i] is not whole[i]])
        return _Prepared(originals, work, pointers, (*solved.sizes, *strides), copies)

    def _solve(self, shapes: Mapping[str, tuple[int, ...]], sizes: Mapping[str, int], numbers: Mapping[str, int]) -> _Solved:
        """The sizes that shapes and the `numbers` in conditions determine beside the `sizes` that were given, and the shapes of outputs that were
        not."""
        key = (*shapes.items(), *sizes.items(), *numbers.items())
        if key not in self._solved:
            for name, value in sizes.items():
                if name in self._binds and self._binds[name][0] != value:
                    raise error("E705", f"{self.name}: the size {name} is {self._binds[name][0]} as compiled, and {value} as given")
            given = self._binds | {n: (v, "as given") for n, v in (*numbers.items(), *sizes.items())}
            known = sizes_of(self.name, self._dims, shapes, self._equations, given, self._sizes)
            new = {a["name"]: tuple([evaluate(formula(e), known) for e in a["shape"]])
                   for a in self._leading[len(self._inputs):] if a["name"] not in shapes}
            for name, shape in new.items():
                if min(shape, default=0) < 0:
                    raise error("E704", f"{self.name}: {name} would have the shape {shape}")
            if len(self._solved) >= MOST_SHAPES:
                self._solved.clear()
            self._solved[key] = _Solved(tuple([known[n] for n in self._sizes]), new)
        return self._solved[key]

    def _outputs_are_apart(self, work: Sequence[Any]) -> None:
        for n, i in enumerate(self._written):
            if array_arguments.folded(work[i]):
                raise error("E713", f"{self.name}: elements of the output {self._leading[i]['name']} share memory with each other")
            for j in self._written[:n]:
                if array_arguments.share(work[i], work[j]):
                    raise error("E713", f"{self.name}: the outputs {self._leading[j]['name']} and {self._leading[i]['name']} share memory")

    def _called(self, values: Sequence[Any], sizes: Mapping[str, int]) -> Any:
        prepared = self._prepare(values, sizes)
        code = self._run(*prepared.pointers, *prepared.tail)
        if code:
            raise self._failure(code, prepared.tail)
        for written, original, worked, described in prepared.copies:
            if written:
                array_arguments.give_back(original, worked, described)
        return self._returned(prepared.originals)

    def _failure(self, code: int, tail: Sequence[int]) -> CatenError:
        """What a result other than 0 means."""
        sizes = dict(zip(self._sizes, tail, strict=False))
        shown = ", ".join([f"{n} = {v}" for n, v in sizes.items()])
        if code == OUT_OF_MEMORY:
            needed = f": {evaluate(self._scratch, sizes)} bytes" if set(names(self._scratch)) <= sizes.keys() else ""
            return array_arguments.OutOfMemory.of(self.name, f"no memory for scratch{needed}")
        return error("E711", f"{self.name}: {self._check(code)}", notes=((f"called with {shown}", None),) if shown else ())

    def _check(self, row: int) -> str:
        """The text of a failed check."""
        texts = {} if self._own is None else {check["row"]: str(check["text"]) for check in self.manifest["checks"]}
        return texts.get(row) or self._entry.check(row)


@frozen
class _Solved:
    """What shapes say: the sizes in the order of the C function, the shapes of outputs that were not given."""

    sizes: tuple[int, ...]
    new: Mapping[str, tuple[int, ...]]


@frozen
class _Prepared:
    """A checked call. `originals`: what the caller gave, and what was allocated; `work`: what the kernel sees; `tail`: sizes and strides; `copies`:
    (is it written?, original, copy, argument) of arrays that the kernel does not work on itself."""

    originals: list[Any]
    work: list[Any]
    pointers: list[Any]
    tail: tuple[int, ...]
    copies: tuple[tuple[bool, Any, Any, Mapping[str, Any]], ...]


class Operators(Mapping[str, Operator]):
    """The operators of a library, as attributes and by name: `ops.Gemm`, `ops["Gemm"]`. A library has at least one."""

    def __init__(self, library: Library, source: str = "", found: Sequence[Operator] = ()):
        """`found`: the operators, where there are such already."""
        self._library, self._manifest = library, library.manifest
        self._own: Own | None = None
        self._copied_from: Operators | None = None
        self._found = {op.name: op for op in found or [Operator(library, op, source) for op in operators(library.manifest)]}

    def says(self, source: str, own: Own | None = None) -> None:
        """As of one operator."""
        self._own = own
        for operator in self._found.values():
            operator.says(source, own)

    @classmethod
    def of(cls, operator: Operator) -> Operators:
        """The library of one operator."""
        made = cls(operator._library, found=[operator])
        made._own = operator._own
        return made

    @property
    def manifest(self) -> Manifest:
        """What the library says of itself."""
        return self._manifest if self._own is None else self._own.manifest

    def copied(self, name: str, source: str, own: Own | None) -> Operator | Operators:
        """As of one operator: the one of this name, or a library of all."""
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
        return (Operators.of, (next(iter(self._found.values())),)) if one else (restored, (pickled(self._library), "", said))

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
    """What calls a library: its operator, or all of them."""
    return Operator(library, operators(library.manifest)[0], source) if "ops" not in library.manifest else Operators(library, source)


def library_of(operators: Operator | Operators) -> Library:
    """The loaded library that they call."""
    return operators._library
