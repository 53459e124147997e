"""Programs as data: a TOML file that names operators, inputs, parameters and what is computed."""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, sqrt
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import tomli

from caten.core.dtypes import is_float
from caten.core.numpy_types import as_stored, kind_of, numpy_dtype
from caten.core.text import Atom, place_in, read_forms
from caten.errors import CatenError, Place, did_you_mean, error
from caten.frontend import operator_library
from caten.frozen import frozen

from . import random
from .element_types import type_named
from .graph import Leaf
from .other_names import OPERATORS
from .tensor import Tensor, apply, operator, tensor
from .training import OPTIMIZERS

DECLARED = re.compile(r"\s*(?P<name>\w+)\{(?P<type>\w+)(?P<grad>\s+grad)?\}\[(?P<shape>[\w\s]*)\]\s*")
MAIN = ("outputs", "loss", "code")
SECTIONS = ("modules", "inputs", "parameters", "main", "train")
TRAIN = {"optimizer": "adamw", "lr": 1e-3, "batch": 32, "epochs": 10, "data": "", "seed": 0, "momentum": 0.0,
         "weight_decay": 0.0, "clip": 0.0}
LEAST = {"batch": 1, "epochs": 1}       # other numbers are 0 at least, and the learning rate is more than that
ARITHMETIC = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}


@frozen
class Declared:
    """An input or a parameter: its element type and shape; the extents of inputs may be names. `grad`: it is
    trained."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    grad: bool = False


@dataclass
class GraphProgram:
    """A program: `inputs` and `parameters` by name, `outputs` and `loss` as names of what `[main]` sets."""

    file: str
    inputs: dict[str, Declared]
    parameters: dict[str, Tensor]
    outputs: tuple[str, ...]
    loss: str
    train: dict[str, Any]
    code: str
    modules: dict[str, Callable[..., Any]] = field(default_factory=dict)

    def forward(self, given: Mapping[str, Any]) -> dict[str, Tensor]:
        """What `[main]` sets, from arrays or tensors for the inputs. E678 where they do not fit."""
        return _Evaluation(self, self.bound(given)).run()

    def tensor(self, name: str, given: Any) -> Tensor:
        """An array as a tensor of the type of an input. E678 where the numbers are none of this type, rather than cut:
        floats for integers, complex numbers for real ones, integers beyond the range."""
        declared = self.inputs[name].dtype
        array, wanted = np.asarray(given), numpy_dtype(type_named(declared))
        array = as_stored(array, type_named(declared))
        if kind_of(array.dtype) == "V":
            raise error("E678", f"the input '{name}' has elements of type {array.dtype}, which are no numbers",
                        Place(self.file, 1, 1), hint=f"convert them: .astype('{wanted.name}')")
        kinds = "buifc"
        if array.size and array.dtype.kind in kinds and wanted.kind in kinds:
            said = f"the input '{name}' has elements of type {array.dtype}, not {wanted.name}"
            if "bifc".index(array.dtype.kind.replace("u", "i")) > "bifc".index(wanted.kind.replace("u", "i")):
                raise error("E678", said, Place(self.file, 1, 1), hint=f"convert it: .astype('{wanted.name}')")
            if wanted.kind in "iu" and array.dtype != wanted:
                least, most, bounds = int(array.min()), int(array.max()), np.iinfo(wanted)
                if least < bounds.min or most > bounds.max:
                    raise error("E678", f"{said}, and {least if least < bounds.min else most} is out of its range",
                                Place(self.file, 1, 1))
        return Tensor(array, declared)

    def loss_of(self, given: Mapping[str, Any]) -> Tensor:
        """The loss. E678 where it is no number."""
        return self.checked_loss(self.forward(given))

    def checked_loss(self, made: Mapping[str, Tensor]) -> Tensor:
        """The loss among what `forward` has made. E678 where it is no number."""
        loss = made[self.loss]
        if loss.shape:
            raise error("E678", f"the loss '{self.loss}' has the shape {list(loss.shape)}, and is no number",
                        Place(self.file, 1, 1), hint=f"(mean {self.loss}) is one")
        return loss

    def bound(self, given: Mapping[str, Any]) -> dict[str, Tensor]:
        """The inputs as tensors of the declared types. E678 for one that is missing, or of another shape."""
        sizes: dict[str, int] = {}
        found: dict[str, Tensor] = {}
        for name, declared in self.inputs.items():
            if name not in given:
                raise error("E678", f"the input '{name}' is missing", Place(self.file, 1, 1))
            value = given[name] if isinstance(given[name], Tensor) else self.tensor(name, given[name])
            if isinstance(value._ref.node, Leaf):
                value._ref.node.fixed = frozenset([n for n, e in enumerate(declared.shape) if isinstance(e, int)])
            if value.ndim != len(declared.shape) or any(
                    sizes.setdefault(e, n) != n if isinstance(e, str) else e != n
                    for e, n in zip(declared.shape, value.shape, strict=False)):
                shape = " ".join(map(str, declared.shape))
                raise error("E678", f"the input '{name}' has the shape [{shape}], not {list(value.shape)}",
                            Place(self.file, 1, 1), hint=", ".join(f"{e} is {n}" for e, n in sizes.items()) or None)
            found[name] = value
        return found

    @property
    def trained(self) -> dict[str, Tensor]:
        """The parameters that are declared with `grad`."""
        return {name: p for name, p in self.parameters.items() if p.requires_grad}

    @property
    def sizes(self) -> list[str]:
        """The names of extents of inputs."""
        return list(dict.fromkeys([e for d in self.inputs.values() for e in d.shape if isinstance(e, str)]))


def parsed(text: str, file: str = "<stdin>") -> GraphProgram:
    """A program from its text. E678 with what is wrong, and where."""
    try:
        document = tomli.loads(text)
    except tomli.TOMLDecodeError as problem:
        place = place_in(text.replace("\r\n", "\n"), problem.pos, file)              # as tomli counts
        raise error("E678", f"this is no TOML: {problem.msg}", place) from None
    for section in document:
        if section not in SECTIONS:
            _fail(text, file, section, f"there is no section [{section}] in a program",
                  did_you_mean(section, SECTIONS) or f"the sections are {', '.join(SECTIONS)}")
        if not isinstance(document[section], dict):
            _fail(text, file, section, f"'{section}' is a section", f"[{section}] begins it")
    main = document.get("main", {})
    if not isinstance(main.get("code"), str):
        _fail(text, file, "main", "a program has a section [main] with its code", 'code = "(set Y (relu X))"')
    for name in main:
        if name not in MAIN:
            _fail(text, file, name, f"[main] has no '{name}'",
                  did_you_mean(name, MAIN) or f"it has {', '.join(MAIN)}", "main")
    inputs, declared = [{name: _declared(text, file, name, value, section)
                         for name, value in document.get(section, {}).items()} for section in ("inputs", "parameters")]
    for name in declared:
        if name in inputs:
            _fail(text, file, name, f"'{name}' is an input, and cannot be a parameter too", section="parameters")
    train = TRAIN | document.get("train", {})
    for name in document.get("train", {}):
        if name not in TRAIN:
            _fail(text, file, name, f"[train] has no '{name}'", did_you_mean(name, list(TRAIN)), "train")
        _check_setting(text, file, name, train[name])
    if train["optimizer"] not in OPTIMIZERS:
        _fail(text, file, "optimizer", f"there is no optimizer '{train['optimizer']}'",
              did_you_mean(train["optimizer"], list(OPTIMIZERS)) or f"there are {', '.join(OPTIMIZERS)}", "train")
    if train["momentum"] and train["optimizer"] not in ("sgd", "rmsprop"):
        _fail(text, file, "momentum", f"{train['optimizer']} has no momentum", 'optimizer = "sgd" has', "train")
    outputs, loss = main.get("outputs", []), main.get("loss", "")
    if not isinstance(outputs, list) or not all(isinstance(name, str) for name in outputs):
        _fail(text, file, "outputs", "outputs is a list of names", 'outputs = ["Y"]', "main")
    if not isinstance(loss, str):
        _fail(text, file, "loss", "loss is a name", 'loss = "L"', "main")
    random.seed(int(train["seed"]))
    program = GraphProgram(file, inputs, {name: _drawn(text, file, d) for name, d in declared.items()},
                           tuple(outputs), loss, train, main["code"])
    for name, value in document.get("modules", {}).items():
        program.modules[name] = _module(text, file, name, value)
    names = _Evaluation(program, {}).names()
    for key, wanted in (("outputs", program.outputs), ("loss", (program.loss,) if program.loss else ())):
        for name in wanted:
            if name not in names:
                _fail(text, file, key, f"[main] sets no '{name}'", did_you_mean(name, sorted(names)), "main")
    return program


def read(path: str | Path) -> GraphProgram:
    """A program from its file. E678 as above; OSError as of `open`."""
    try:
        text = Path(path).read_text("utf-8")
    except UnicodeDecodeError as problem:
        raise error("E678", f"{path} is no text: {problem.reason} (UTF-8)") from None
    return parsed(text, str(path))


def _check_setting(text: str, file: str, name: str, value: Any) -> None:
    """E678 if a value in [train] is of another type, or out of range."""
    kind = type(TRAIN[name])
    if kind is str:
        if not isinstance(value, str):
            _fail(text, file, name, f"{name} in [train] is a text, not {value!r}", section="train")
        return
    least = LEAST.get(name, 0)
    is_number = isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)
    if not is_number or not least <= value < inf or (name == "lr" and not value):
        what = "an integer" if kind is int else "a number"
        _fail(text, file, name, f"{name} in [train] is {what} {'above' if name == 'lr' else 'from'} {least}"
                                f"{'' if name == 'lr' else ' on'}, not {value!r}", section="train")


def _fail(text: str, file: str, word: str, message: str, hint: str | None = None, section: str = "") -> NoReturn:
    """Raise E678 at the first place of a word, in a section if one is given."""
    start = max(0, text.find(f"[{section}]"))
    found = re.compile(rf"(?<![\w]){re.escape(word)}(?![\w])").search(text, start)
    raise error("E678", message, place_in(text, found.start(), file) if found else Place(file, 1, 1), hint=hint)


def _declared(text: str, file: str, name: str, value: Any, section: str) -> Declared:
    """An input or a parameter, as its section declares it."""
    m = DECLARED.fullmatch(value) if isinstance(value, str) else None
    if m is None or m["name"] != name:
        example = "{float}[B 64]" if section == "inputs" else "{float grad}[64 10]"
        _fail(text, file, name, f"'{name}' is declared with its type and shape", f'{name} = "{name}{example}"', section)
    try:
        dtype = type_named(m["type"])
    except TypeError:
        _fail(text, file, m["type"], f"there is no element type '{m['type']}'", section=section)
    return Declared(name, dtype, tuple([int(e) if e.isdigit() else e for e in m["shape"].split()]),
                    m["grad"] is not None)


def _drawn(text: str, file: str, declared: Declared) -> Tensor:
    """A parameter: matrices drawn evenly (Glorot and Bengio, 2010), vectors of zeros."""
    shape = tuple([e for e in declared.shape if isinstance(e, int)])
    if len(shape) != len(declared.shape):
        _fail(text, file, declared.name, f"the extents of the parameter '{declared.name}' are numbers",
              section="parameters")
    if declared.grad and not is_float(declared.dtype):
        _fail(text, file, declared.name, f"the parameter '{declared.name}' has no gradient: only floats have",
              section="parameters")
    values = np.zeros(shape) if len(shape) < 2 else random.current().uniform(shape, sqrt(6 / (shape[0] + shape[1])))
    return Tensor(values.astype(numpy_dtype(declared.dtype)), requires_grad=declared.grad)


def _module(text: str, file: str, name: str, value: Any) -> Callable[..., Any]:
    """An operator: of the library by its name, or a spec in a file beside the program or in the text."""
    if not isinstance(value, str):
        _fail(text, file, name, f"the module '{name}' is the name of an operator, the file of a spec, or its text")
    if "\n" in value:
        return operator(value)
    if not value.endswith(".toml"):
        if operator_library.find(value) is None:
            known = [entry.name for entry in operator_library.entries()]
            _fail(text, file, value, f"the library has no operator '{value}'",
                  did_you_mean(value, known) or "caten ops lists them")
        return lambda *inputs, **attributes: apply(value, *inputs, **attributes)
    path = Path(file).parent / value
    if not path.exists():
        _fail(text, file, value, f"there is no file {path}")
    return operator(path)


class _Evaluation:
    """One run through the code."""

    def __init__(self, program: GraphProgram, inputs: Mapping[str, Tensor]) -> None:
        self.program = program
        self.values: dict[str, Any] = {**program.parameters, **inputs}
        self.sizes = {e: n for name, t in inputs.items()
                      for e, n in zip(program.inputs[name].shape, t.shape, strict=True) if isinstance(e, str)}
        self.forms = read_forms(program.code, self.place)

    def place(self, pos: int) -> Place:
        """Where a word of the code is."""
        return place_in(self.program.code, pos, f"{self.program.file} [main]")

    def names(self) -> set[str]:
        """What is set. E678 for a statement that is none."""
        found = set[str]()
        for form in self.forms:
            if isinstance(form, str) or len(form) != 3 or form[0] != "set" or not _are_names(_set_by(form)):
                raise error("E678", "a statement is (set NAME EXPRESSION)", self.place(_position(form)),
                            hint="(set (values index) (topk x :k 3)) names each result of an operator")
            found.update(map(str, _set_by(form)))
        return found

    def run(self) -> dict[str, Tensor]:
        """All that is set, by name."""
        made: dict[str, Tensor] = {}
        for form in self.forms:
            value, names = self.value(form[2]), list(map(str, _set_by(form)))
            results = value if isinstance(value, tuple) else (value,)
            if len(results) != len(names) or not all(isinstance(r, Tensor | int | float) for r in results):
                what = f"{len(results)} results" if isinstance(value, tuple) else (
                    "one array" if isinstance(value, Tensor | int | float) else "no number or array")
                said, stand = ((f"'{names[0]}' is", "a name stands for one array") if isinstance(form[1], str) else
                               (f"{len(names)} names are", "each name stands for one array"))
                raise error("E678", f"{said} set to {what}, and {stand}", self.place(_position(form)),
                            hint=f"(set ({' '.join([f'NAME{n}' for n in range(1, len(results) + 1)])}) …) names each"
                            if len(results) > 1 else None)
            for name, result in zip(names, results, strict=True):
                self.values[name] = result
                made[name] = tensor(result)
        return made

    def value(self, form: Any) -> Any:
        """The value of an expression."""
        if isinstance(form, Atom):
            return self.atom(form)
        if isinstance(form, str):
            return str(form)
        if not form or not isinstance(form[0], Atom):
            raise error("E678", "an expression begins with the name of a module", self.place(_position(form)))
        inputs: list[Any] = []
        attributes: dict[str, Any] = {}
        words = iter(form[1:])
        for word in words:
            if isinstance(word, Atom) and word.startswith(":"):
                value = next(words, None)
                if value is None or (isinstance(value, Atom) and value.startswith(":")):
                    raise error("E678", f"the attribute '{word[1:]}' has no value", self.place(word.pos),
                                hint=f"{word} 1 gives it one")
                attributes[word[1:]] = self.attribute(value)
            else:
                inputs.append(self.value(word))
        called = self.module(form[0])
        try:
            return called(*inputs, **attributes)
        except CatenError as problem:
            place = self.place(_position(form))
            raise CatenError(*[d if d.place is not None else d.at(place) for d in problem.diagnostics]) from None
        except ValueError as problem:
            raise error("E678", str(problem), self.place(_position(form))) from None

    def attribute(self, form: Any) -> Any:
        """The value of an attribute: a number, a size of the inputs, a word, or a list of them."""
        if isinstance(form, list | tuple) and not isinstance(form, str):
            return tuple([self.attribute(f) for f in form])
        if form in self.sizes:
            return self.sizes[form]
        known = {"true": True, "false": False, "none": None}
        return known[form] if form in known else _number(form) if _number(form) is not None else str(form)

    def module(self, name: Atom) -> Callable[..., Any]:
        """The operator that a name stands for."""
        if name in self.program.modules:
            return self.program.modules[name]
        own = ARITHMETIC.get(name, str(name))
        if own == "reshape":                                # whose extents stay sizes where they can
            return _reshaped
        if operator_library.find(own) is None:
            known = [*self.program.modules, *ARITHMETIC, *[entry.name for entry in operator_library.entries()]]
            raise error("E678", f"there is no module '{name}', and the library has no such operator",
                        self.place(name.pos), hint=OPERATORS.get(name) or did_you_mean(name, known)
                        or "caten ops lists the operators")
        return lambda *inputs, **attributes: apply(own, *inputs, **attributes)

    def atom(self, name: Atom) -> Any:
        """An input, a parameter, what is set, or a number."""
        number = _number(name)
        if number is not None:
            return number
        if name not in self.values:
            raise error("E678", f"there is no '{name}' here", self.place(name.pos),
                        hint=did_you_mean(name, list(self.values)) or "inputs, parameters and what is set have names")
        return self.values[name]


def _reshaped(*inputs: Any, **attributes: Any) -> Tensor:
    if len(inputs) != 1 or not isinstance(inputs[0], Tensor) or list(attributes) != ["shape"]:
        raise error("E678", "reshape takes one array and the attribute :shape, a number or (NUMBER…)")
    return inputs[0].reshape(attributes["shape"])


def _set_by(statement: Any) -> Sequence[Any]:
    """The names of a statement: one, or one for each result of its operator."""
    return (statement[1],) if isinstance(statement[1], str) else tuple(statement[1])


def _are_names(words: Sequence[Any]) -> bool:
    return bool(words) and all(isinstance(word, str) and _number(word) is None for word in words)


def _number(word: Any) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(word)
        except (TypeError, ValueError):
            continue
    return None


def _position(form: Any) -> int:
    while not isinstance(form, str) and form:
        form = form[0]
    return int(getattr(form, "pos", 0))
