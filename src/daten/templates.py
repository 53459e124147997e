"""Operators as programs of values with holes: what a graph is put together from.

A template is the tensor level of an operator for some element types, ranks and attributes. Its sizes are names; a graph
gives them their extents. It is made once per process, and so is its gradient.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caten import driver, loading
from caten.core.dtypes import DTYPES, is_float
from caten.core.expr import Expr, Var
from caten.core.program import Buffer, GradientBody, Require, Scalar
from caten.core.size_formula import conjuncts, evaluate
from caten.diagnostic import Diagnostic
from caten.errors import CatenError, amount, did_you_mean, error
from caten.frontend import operator_library
from caten.frontend.generic_signature import Tensor, for_each_axis, is_value, misfit, of_call, tuples
from caten.frontend.op import OpProgram
from caten.frontend.spec_files import SpecText
from caten.frozen import frozen
from caten.options import Instance
from caten.tensor.nest_sources import without_callers_outputs
from caten.tensor.values import TensorProgram
from caten.tensor.window_sizes import image_sizes, window_sizes

from .kept_values import kept
from .misfits import Axes
from .other_names import ATTRIBUTES
from .scalar_inputs import with_indices_as_arrays
from .settings import forgotten_by_use, options
from .symbolic_sizes import has_symbolic

if TYPE_CHECKING:
    from caten.frontend.bodies_in_steps import Step
    Steps = tuple[tuple[Step, TensorProgram | None], ...]

Given = tuple[str, tuple[int, ...]]                         # an element type and a shape
EXPRESSION = "<expression>"                                 # the file of a body of our own
EXTENT = re.compile(r"\bN\d+_\d+\b")
INDEXING = "getitem", "setitem"                             # names of bodies that read and write at an index
MOST_SHAPES = 1024                                          # of the inputs of an operator that are remembered
Formula = tuple[str, Any, Expr]                             # an input, one of its extents, and its formula


class Template:
    """An operator. `inputs` and `outputs`: the names of its arrays."""

    def __init__(self, program: TensorProgram, inputs: Sequence[str], outputs: Sequence[str],
                 known: tuple[str, ...] | None = None) -> None:
        """`known`: what determines it, for other processes; None where that is not known."""
        self.known = known
        self.program, self.inputs, self.outputs = without_callers_outputs(program), tuple(inputs), tuple(outputs)
        self.name = self.program.name
        buffers = program.buffers
        scalars = {s.name: s.type for s in program.all(Scalar)}
        self.dtypes = tuple([buffers[name].type for name in self.outputs])
        self.input_dtypes = tuple([buffers[n].type if n in buffers else scalars[n] for n in self.inputs])
        self.input_shapes: tuple[tuple[Expr, ...], ...] = tuple([buffers[n].shape if n in buffers else ()
                                                                 for n in self.inputs])
        self.output_shapes = tuple([buffers[name].shape for name in self.outputs])
        self.conditions = tuple([c for r in self.program.all(Require) for c in conjuncts(r.cond)])
        self._gradients: dict[tuple[bool, ...], Template] = {}
        self._refused: dict[tuple[bool, ...], CatenError] = {}
        self._in_steps: Callable[[], Steps] = tuple
        self._shapes: dict[tuple[Given, ...], tuple[tuple[int, ...], ...]] = {}

    def __repr__(self) -> str:
        return f"<{self.program.name}({', '.join(self.inputs)}) -> {', '.join(self.outputs)}>"

    def shapes(self, given: Sequence[Given]) -> tuple[tuple[int, ...], ...]:
        """The shapes of the results, from the element types and shapes of the inputs. E675 for inputs that do not
        fit."""
        key = tuple(given)
        known = self._shapes.get(key)
        if known is None:
            sizes = self.sizes(key)
            self._check(sizes)
            known = tuple([tuple([int(evaluate(e, sizes)) for e in shape]) for shape in self.output_shapes])
            for name, extents, shape in zip(self.outputs, self.output_shapes, known, strict=True):
                if min(shape, default=0) < 0:
                    raise self._axes.negative(self.name, name, extents, shape, sizes)
            if len(self._shapes) >= MOST_SHAPES:
                self._shapes.clear()
            self._shapes[key] = known
        return known

    def _check(self, sizes: Mapping[str, int]) -> None:
        """E675 for extents that the operator refuses in every call."""
        for condition in self.conditions:
            if condition.variables <= sizes.keys() and not evaluate(condition, sizes):
                raise self._axes.unmet(self.name, condition, sizes)

    @property
    def _axes(self) -> Axes:
        return Axes(self.inputs, self.input_shapes)

    def sizes(self, given: Sequence[Given]) -> dict[str, int]:
        """The sizes of the operator. E675 for inputs that do not fit."""
        if len(given) != len(self.inputs):
            raise error("E675", f"{self.name} has {amount(len(self.inputs), 'input')}, not {len(given)}",
                        hint=f"they are {', '.join(self.inputs)}")
        sizes: dict[str, int] = {}
        formulas: list[tuple[str, int, Expr]] = []              # an axis, its extent, and what it has to be
        for name, (dtype, shape), own, wanted in zip(self.inputs, given, self.input_shapes, self.input_dtypes,
                                                     strict=True):
            if dtype != wanted:
                raise error("E675", f"{self.name}: {name} has elements of type {DTYPES[dtype].numpy}, not "
                                    f"{DTYPES[wanted].numpy}", hint=f"convert it: .astype('{DTYPES[wanted].numpy}')")
            if len(shape) != len(own):
                raise error("E675", f"{self.name}: {name} has {len(shape)} axes, not {len(own)}")
            for axis, (extent, e) in enumerate(zip(shape, own, strict=True)):
                if not isinstance(e, Var):
                    formulas.append((f"axis {axis} of {name}", extent, e))
                elif sizes.setdefault(e.name, extent) != extent:
                    raise self._axes.differs(self.name, f"axis {axis} of {name}", extent, e, sizes)
        for place, extent, e in in_solvable_order(formulas, sizes.keys()):
            for unknown in e.variables - sizes.keys():
                start = evaluate(e, {**sizes, unknown: 0})
                step = evaluate(e, {**sizes, unknown: 1}) - start
                sizes[unknown] = (extent - start) // step if step else 0
            if evaluate(e, sizes) != extent:
                raise self._axes.differs(self.name, place, extent, e, sizes)
        return sizes

    def gradient(self, wanted: tuple[bool, ...]) -> Template:
        """The operator of the gradients with respect to some of the inputs. Its inputs are those of the operator, its
        outputs if it takes them (`takes_results`), and the gradient of each output of floats. E676 if there is
        none."""
        if wanted in self._refused:
            raise self._refused[wanted]
        if wanted not in self._gradients:
            names = [n for n, want in zip(self.inputs, wanted, strict=True) if want]

            def differentiated() -> TensorProgram:
                from caten.differentiation import gradient_of
                return gradient_of(self.program, options(), names)
            known = self.known and (*self.known, "gradient", *names)
            try:
                made = kept(known, differentiated) if known else differentiated()
            except CatenError as problem:
                self._refused[wanted] = problem
                raise
            arrays = [p for p in made.params if isinstance(p, Buffer | Scalar)]
            made_of = [p.name for p in arrays if isinstance(p, Scalar) or p.access == "in"]
            given = [name for name in made_of if name not in self.inputs]
            self._gradients[wanted] = Template(made, [*self.inputs, *given],
                                               [p.name for p in arrays if p.name not in made_of], known)
            self._gradients[wanted].windows, self._gradients[wanted].images = self.windows, self.images

            def in_steps() -> Steps:
                from caten.differentiation import gradient_steps
                return gradient_steps(self.program, options(), names)
            self._gradients[wanted]._in_steps = in_steps
        return self._gradients[wanted]

    @cached_property
    def windows(self) -> frozenset[tuple[str, ...]]:
        """The sizes that are extents of windows (of several, the smallest is), as those of a convolution are; of a
        gradient, those of its operator."""
        return window_sizes(self.program)

    @cached_property
    def images(self) -> frozenset[str]:
        """The sizes on which it depends how many places these windows have."""
        return image_sizes(self.program)

    @cached_property
    def steps(self) -> tuple[TemplateStep, ...]:
        """Operators that compute the same one after the other, each of which may have a gradient where the whole has
        none; none where there are no such steps."""
        made: list[TemplateStep] = []
        for step, values in self._in_steps():
            template = None
            if step.operator:
                template = of_spec(library_spec(step.operator), step.operator, step.instance or Instance((), (), ""))
            elif values is not None:
                template = Template(values, step.takes, [o.name for o in values.outputs])
            made.append((template, step.takes, step.gives))
        return tuple(made)

    @property
    def takes_results(self) -> bool:
        """Is its gradient written by hand, over its results too?"""
        return self.program.first(GradientBody) is not None

    @property
    def seeded(self) -> tuple[int, ...]:
        """The outputs that have a gradient: those of floats."""
        return tuple([n for n, dtype in enumerate(self.dtypes) if is_float(dtype)])


def in_solvable_order(formulas: Sequence[Formula], known: Iterable[str]) -> Iterator[Formula]:
    """Formulas of extents in an order in which each has at most one size that is not known by the ones before."""
    sizes, left = set(known), list(formulas)
    while left:
        found = min(left, key=lambda formula: len(formula[2].variables - sizes))
        left.remove(found)
        sizes |= found[2].variables
        yield found


TemplateStep = tuple[Template | None, tuple[str, ...], tuple[str, ...]]    # what it takes and gives; None: the same


class Reshape:
    """The same elements in another shape: an operator whose extents are those of a graph, where they are its sizes.
    `formulas`: of its shape, in a function that is traced once for many sizes."""

    seeded, takes_results = (0,), False

    def __init__(self, dtype: str, shape: tuple[int, ...], formulas: tuple[Expr, ...] | None = None) -> None:
        self.dtypes, self.shape, self.formulas, self.name = (dtype,), shape, formulas, "reshape"

    def shapes(self, given: Sequence[Given]) -> tuple[tuple[int, ...], ...]:
        """The shape of the result."""
        return (self.shape,)


class ByHand:
    """The results of a graph as they are, with gradients from a function: of the gradients of the results those with
    respect to the inputs. The node has the results as inputs, then the inputs."""

    takes_results, name = False, "by_hand"

    def __init__(self, dtypes: tuple[str, ...], backward: Callable[..., Any]) -> None:
        self.dtypes, self.backward = dtypes, backward
        self.seeded = tuple([n for n, dtype in enumerate(dtypes) if is_float(dtype)])

    def shapes(self, given: Sequence[Given]) -> tuple[tuple[int, ...], ...]:
        """The shapes of the results."""
        return tuple([shape for _, shape in given[:len(self.dtypes)]])


class Barrier:
    """Arrays as they are, but as other values: what is computed from them is not merged with what was computed from the
    ones before, and not before all of them are there."""

    takes_results, name = False, "barrier"

    def __init__(self, dtypes: tuple[str, ...]) -> None:
        self.dtypes = dtypes
        self.seeded = tuple([n for n, dtype in enumerate(dtypes) if is_float(dtype)])

    def shapes(self, given: Sequence[Given]) -> tuple[tuple[int, ...], ...]:
        """The shapes of the arrays."""
        return tuple([shape for _, shape in given])


AnyTemplate = Template | Reshape | ByHand | Barrier


@frozen
class Declaration:
    """How an operator is declared: its inputs and outputs, and its attributes, by name; the declarations of a generic
    signature, or the element types of inputs, by name."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    defaults: tuple[tuple[str, Any], ...]
    generic: tuple[Tensor, ...]
    types: tuple[tuple[str, str], ...] = ()

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return tuple([name for name, _ in self.defaults])


def of_spec(spec: SpecText, name: str, instance: Instance) -> Template:
    """The template of an operator of a spec."""
    return _of_instance(spec, name, instance, repr(instance))


@cache
def _of_instance(spec: SpecText, name: str, instance: Instance, spelled: str) -> Template:
    """The same; `spelled` tells instances apart that are equal in Python."""
    def raised() -> TensorProgram:
        instances = (instance,) if instance.arrays or instance.attributes else ()
        own = replace(options(), opt=max(1, options().opt))       # at -O0 loops stay loops: nothing would be fused
        (op,) = loading.loaded([spec], replace(own, instances=instances, only=(name,)))
        assert isinstance(op, OpProgram)
        program = driver.advance(with_indices_as_arrays(op), "tensor", own)
        assert isinstance(program, TensorProgram)
        return program
    declared = declaration_of(spec, name)
    known = _known(spec, name)
    known = known and (*known, spelled)
    return Template(kept(known, raised) if known else raised(), declared.inputs, declared.outputs, known)


@cache
def declaration_of(spec: SpecText, name: str) -> Declaration:
    """An operator of a spec, as it is declared."""
    def read() -> Declaration:
        from caten.frontend.spec import composites_of
        (found,) = [c for c in composites_of(spec, options())[0] if c.name == name]
        types = () if found.generic else tuple([(t.name, t.dtype) for t in found.tensors if t.name in found.inputs])
        return Declaration(found.inputs, found.outputs, found.attributes, found.generic, types)
    known = _known(spec, name)
    return kept((*known, "declaration"), read) if known else read()


def _known(spec: SpecText, name: str) -> tuple[str, ...] | None:
    """What determines an operator beside caten: the library's are, and bodies of our own, for they include no files of
    a user's."""
    own = spec.name == EXPRESSION or Path(spec.name).parent == operator_library.FOLDER
    return (spec.name, spec.text, name) if own else None


def of_call_with(spec: SpecText, name: str, inputs: Sequence[Given], attributes: Mapping[str, Any]) -> Template:
    """The template for inputs with these element types and shapes."""
    given = tuple([(n, tuples(value)) for n, value in attributes.items()])
    known = declaration_of(spec, name).attributes
    for n, value in given:
        if n not in known:
            raise error("E675", f"{name}: there is no attribute '{n}'",
                        hint=did_you_mean(ATTRIBUTES.get(n, n), known) or f"there are {', '.join(known) or 'none'}")
        if has_symbolic(value):
            raise ValueError(f"jit: the attribute '{n}' of {name} has the size {value}, which varies from call to call")
        if not is_value(value):
            raise error("E675", f"{name}: the attribute '{n}' is {value!r}",
                        hint="it may be a number, True, False, None, a text, or a tuple of them")
    kinds = tuple([(dtype, tuple([1 if e == 1 else 2 for e in shape])) for dtype, shape in inputs])
    return _of_kinds(spec, name, kinds, given, repr(given))


@cache
def _of_kinds(spec: SpecText, name: str, inputs: tuple[Given, ...], given: tuple[tuple[str, Any], ...],
              spelled: str) -> Template:
    """The same for all shapes of these ranks with extents of 1 at these places. `spelled`: tells attributes apart that
    are equal in Python: `True`, 1 and 1.0, and 0.0 and -0.0."""
    declared, attributes = declaration_of(spec, name), dict(given)
    try:
        return of_spec(spec, name, of_call(declared.generic, dict(zip(declared.inputs, inputs, strict=False)),
                                           attributes, declared.defaults))
    except CatenError as problem:
        if (filled := for_each_axis(problem, declared.defaults, attributes)) is not None:
            more = tuple(filled.items())
            return _of_kinds(spec, name, inputs, more, repr(more))
        if (said := misfit(problem, declared.defaults, attributes)) is not None:
            raise error("E675", f"{name}: {said}") from None
        raise CatenError(*[_of_operator(d, name) for d in problem.diagnostics]) from None


def _of_operator(d: Diagnostic, name: str) -> Diagnostic:
    """What is wrong with an operator, with its name. The text of one of the library is not shown: it is as it is."""
    is_in_library = d.place is not None and Path(d.place.file).parent == operator_library.FOLDER
    if d.code != "E675" and not is_in_library:
        return d
    return replace(d, message=f"{name}: {d.message}", place=None if is_in_library else d.place)


def of_library(name: str, inputs: Sequence[Given], attributes: Mapping[str, Any]) -> Template:
    """The template of an operator of the library."""
    return of_call_with(library_spec(name), name, inputs, attributes)


library_spec = cache(operator_library.spec_of)


def of_body(code: str, inputs: Sequence[Given], name: str) -> Template:
    """The template of a body over `x0`, `x1` … that is no operator of the library, such as `return x0[1:]`, with a
    name. `Nn_k` in it is the extent of axis k of `xn`. Its elements are of the type of the first."""
    used = set(EXTENT.findall(code))                        # an extent of 1 in this call may be another in others

    def declared(n: int, dtype: str, shape: tuple[int, ...]) -> str:
        extents = " ".join([size if e != 1 or size in used else "1" for k, e in enumerate(shape)
                            for size in (f"N{n}_{k}",)])
        return f'"x{n}{{{DTYPES[dtype].numpy}}}[{extents}]"'
    inputs_text = ", ".join([declared(n, *each) for n, each in enumerate(inputs)])
    result = f"y{{{DTYPES[inputs[0][0]].numpy}}}[...]"
    text = (f'[composite]\nname = "{name}"\ninputs = [{inputs_text}]\noutputs = ["{result}"]\n\n'
            f"[composite.implementation]\nlang = \"python\"\ncode = '''\n{code}\n'''\n")
    return of_spec(SpecText(EXPRESSION, text, "toml"), name, Instance((), (), ""))


forgotten_by_use(_of_instance.cache_clear)
forgotten_by_use(_of_kinds.cache_clear)
forgotten_by_use(declaration_of.cache_clear)
