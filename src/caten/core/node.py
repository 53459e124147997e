"""The one immutable data structure of the compiler: interned nodes with named fields.

A node class declares its fields by annotations and its head by a class argument; printing, reading, walking, matching
and verifying are derived from those declarations:

    class Setf(Stmt, head="setf"):
        '''target = value'''
        target: Ref
        value: Expr

Equal nodes are the same object, so `is` is structural equality, a dictionary keyed by nodes is a dictionary keyed by
structure, and common subexpressions cost nothing. Several threads may make nodes: a look-up takes no lock, for a
dictionary's is atomic; who finds nothing looks again with the lock held, so that no two nodes are made for one key."""
from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from hashlib import blake2b
from typing import Any, ClassVar, Generic, Self, TypeVar, cast, dataclass_transform, overload

T = TypeVar("T")
N = TypeVar("N", bound="Node")


class _Entry(weakref.ref["Node"]):
    """A node in the pool, and its key there."""

    __slots__ = ("key",)
    key: tuple[Any, ...]


_POOL: dict[tuple[Any, ...], _Entry] = {}
UNKNOWN, ITSELF, ALONE = object(), object(), object()         # marks of `kept`
NONE: frozenset[str] = frozenset()
_LOCK = threading.RLock()                           # reentrant: the collector may call `_forget` while it is held
PLAIN = ("str", "int", "bool", "tuple[str, ...]", "tuple[int, ...]")       # annotations of fields that hold no nodes
HEADS: dict[str, type[Node]] = {}
KINDS: dict[str, tuple[type[Node], ...]] = {}       # every class by its name, as the annotations of fields have it


class kept_property(Generic[T]):
    """A property that is computed once per node. Its value is stored in the node's dictionary, where Python looks
    before it calls `__get__`."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute, self.name, self.__doc__ = compute, compute.__name__, compute.__doc__

    @overload
    def __get__(self, node: None, owner: type) -> Self: ...
    @overload
    def __get__(self, node: Node, owner: type) -> T: ...
    def __get__(self, node: Node | None, owner: type) -> Self | T:
        return self if node is None else self.value(node)

    def value(self, node: Node) -> T:
        """The value of a node that has none yet."""
        value = node.__dict__[self.name] = self.compute(node)
        return value


class bottom_up(kept_property[T]):
    """A kept property that is computed from the same property of the children. An explicit stack computes the children
    first: recursion would fail on an expression of a thousand nested terms."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner = owner

    def value(self, node: Node) -> T:
        name, owner, stack = self.name, self.owner, [node]
        while stack:
            if missing := [c for c in stack[-1].children if name not in c.__dict__ and isinstance(c, owner)]:
                stack.extend(missing)
            else:
                last = stack.pop()
                last.__dict__[name] = self.compute(last)
        return node.__dict__[name]  # type: ignore[no-any-return]   # what was computed


@dataclass_transform(frozen_default=True, eq_default=False, kw_only_default=False)
class Node:
    """Base of everything in every IR level. Subclass it with `head=` to declare an IR operation. Making one with the
    same field values returns the same object. (Done by `__new__`: `isinstance` and `match` take four times as long for
    a class with a metaclass.)"""

    head: ClassVar[str] = ""
    _fields: ClassVar[tuple[str, ...]] = ()
    _hidden: ClassVar[frozenset[str]] = frozenset()   # fields that the text does not show; see core.text
    _named: ClassVar[str] = ""                        # a list that the text shows last, by name, unless it is empty
    _defaults: ClassVar[dict[str, Any]] = {}
    _types: ClassVar[dict[str, str]] = {}
    _with_nodes: ClassVar[tuple[tuple[int, str], ...]] = ()     # the fields that may hold nodes, each with its number
    __match_args__: ClassVar[tuple[str, ...]] = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if kwargs or len(args) != len(cls._fields):
            args = cls._bound(args, kwargs)
        key = (cls, *cls._key(args))
        entry = _POOL.get(key)
        node: Any = None if entry is None else entry()
        if node is None:
            with _LOCK:
                entry = _POOL.get(key)
                node = None if entry is None else entry()
                if node is None:
                    node = object.__new__(cls)
                    node.__dict__.update(zip(cls._fields, args, strict=True))
                    entry = _Entry(node, _forget)
                    entry.key = key
                    _POOL[key] = entry
        return node  # type: ignore[no-any-return]   # an instance of this class

    @classmethod
    def _bound(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        values = dict(zip(cls._fields, args, strict=False)) | kwargs
        if len(args) + len(kwargs) > len(values) or values.keys() - set(cls._fields):
            raise TypeError(f"{cls.__name__} takes the fields {', '.join(cls._fields)}")
        try:
            return tuple([values[f] if f in values else cls._defaults[f] for f in cls._fields])
        except KeyError as missing:
            raise TypeError(f"{cls.__name__} lacks the field {missing}") from None

    @classmethod
    def _key(cls, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """What tells nodes of the class apart."""
        return args

    def __init_subclass__(cls, head: str = "", hidden: tuple[str, ...] = (), named: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = {n: t for n, t in cls.__dict__.get("__annotations__", {}).items() if not t.startswith("ClassVar")}
        cls._types = cls._types | own
        cls._fields = (*cls._fields, *(n for n in own if n not in cls._fields))
        cls._defaults = cls._defaults | {n: cls.__dict__[n] for n in own if n in cls.__dict__}
        cls._with_nodes = tuple([(n, f) for n, f in enumerate(cls._fields) if cls._types[f] not in PLAIN])
        for n in own:
            if n in cls.__dict__:
                delattr(cls, n)
        cls.__match_args__ = cls._fields  # type: ignore[misc]   # `case Setf(ref, value)`
        cls._hidden, cls._named = cls._hidden | frozenset(hidden), named or cls._named
        KINDS[cls.__name__] = (*KINDS.get(cls.__name__, ()), cls)
        if head:
            cls.head = head
            HEADS[head] = cls

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.parts

    @property
    def parts(self) -> tuple[Any, ...]:
        """The field values, in declaration order."""
        own = self.__dict__
        return tuple([own[f] for f in self._fields])

    @kept_property
    def children(self) -> tuple[Node, ...]:
        """All nodes directly below, those inside tuples included, in field order."""
        own, found = self.__dict__, list[Node]()
        for _, field in self._with_nodes:
            part = own[field]
            if isinstance(part, Node):
                found.append(part)
            elif isinstance(part, tuple):
                found.extend(_nodes_in(part))
        return tuple(found)

    def map(self, fn: Callable[[Any], Any]) -> Self:
        """This node with `fn` applied to every child; itself when nothing changed.

        Where a child sits in a tuple, `fn` may return a tuple, which is spliced in its place (so a statement may become
        several, or none)."""
        if not self.children:
            return self
        own, new = self.__dict__, None
        for at, field in self._with_nodes:
            part = own[field]
            mapped = fn(part) if isinstance(part, Node) else _map_tuple(part, fn) if isinstance(part, tuple) else part
            if mapped is not part:
                if new is None:
                    new = [own[f] for f in self._fields]
                new[at] = mapped
        return self if new is None else type(self)(*new)

    def walk(self) -> Iterator[Node]:
        """Every node below and this one, parents first, repeated where shared."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    @bottom_up
    def written_out(self) -> int:
        """The number of nodes that `walk` visits, which is what the text holds: a shared node counts each time."""
        return 1 + sum([c.written_out for c in self.children])

    @bottom_up
    def digest(self) -> str:
        """A digest of the whole node, of all its fields, the same in every process. Each shared node is looked at once,
        however often the text would repeat it."""
        return blake2b(f"{type(self).__name__} {_digested(self.parts)}".encode(), digest_size=16).hexdigest()

    @bottom_up
    def outline(self) -> str:
        """A digest of the structure of the node, the same in every process: without the values of constants."""
        named = {name for _, name in self._with_nodes}
        own = [getattr(self, name) for name in self._fields if name not in named]
        parts = [type(self).__name__, repr(own), *[c.outline for c in self.children]]
        return blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()

    @bottom_up
    def depth(self) -> int:
        """The height of the tree; 1 for a node without children."""
        return 1 + max([c.depth for c in self.children], default=0)

    @bottom_up
    def variables(self) -> frozenset[str]:
        """The names of all variables that are read in it."""
        return self._read()

    def _read(self) -> frozenset[str]:
        """`variables` from those of the children. Most nodes share the set of one of their children."""
        read = NONE
        for child in self.children:
            more = child.variables
            if more is not read and not more <= read:
                read = more if read <= more else read | more
        return read

    def unique(self) -> Iterator[Node]:
        """Every distinct node below and this one, parents first."""
        return unique_in((self,))

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        own = self.__dict__
        made = type(self)(*[changes.pop(field, own[field]) for field in self._fields])
        if changes:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(changes)}")
        return made

    def __repr__(self) -> str:
        return PRINTERS[-1](self)


PRINTERS: list[Callable[[Node], str]] = [object.__repr__]      # the last one prints; core.text adds its own


def _forget(entry: _Entry) -> None:
    """A node has ended. Its key may be that of a new one by now."""
    with _LOCK:
        if _POOL.get(entry.key) is entry:
            del _POOL[entry.key]


def _nodes_in(parts: tuple[Any, ...]) -> list[Node]:
    found: list[Node] = []
    for part in parts:
        if isinstance(part, Node):
            found.append(part)
        elif isinstance(part, tuple):
            found.extend(_nodes_in(part))
    return found


def _digested(part: Any) -> str:
    """A field value with digests in place of nodes."""
    if isinstance(part, tuple):
        return f"({' '.join([_digested(p) for p in part])})"
    return part.digest if isinstance(part, Node) else repr(part)


def _map_tuple(parts: tuple[Any, ...], fn: Callable[[Any], Any]) -> tuple[Any, ...]:
    out: list[Any] | None = None                        # from the first part that changes
    for n, p in enumerate(parts):
        if isinstance(p, Node):
            r = fn(p)
            if r is not p and isinstance(r, tuple):
                out = list(parts[:n]) if out is None else out
                out.extend(r)
                continue
        else:
            r = _map_tuple(p, fn) if isinstance(p, tuple) else p
        if out is not None:
            out.append(r)
        elif r is not p:
            out = [*parts[:n], r]
    return parts if out is None else tuple(out)


def unique_in(nodes: Iterable[Node]) -> Iterator[Node]:
    """Every distinct node below several, and those, parents first."""
    stack = list(nodes)
    seen = set(stack)
    while stack:
        node = stack.pop()
        yield node
        for child in reversed(node.children):
            if child not in seen:
                seen.add(child)
                stack.append(child)


def substitute(node: T, mapping: Mapping[Any, Any]) -> T:
    """`node` with every occurrence of a key of `mapping` replaced by its value; shared parts are rebuilt once."""
    memo: dict[Node, Any] = dict(mapping)
    read = {key.variables for key in mapping}              # what a key reads, all that it occurs in reads as well

    def go(n: Any) -> Any:
        if n not in memo:
            memo[n] = n.map(go) if any(each <= n.variables for each in read) else n
        return memo[n]

    return cast(T, _map_tuple(node, go) if isinstance(node, tuple) else go(node))      # rewriting keeps the kind


def kept(compute: Callable[[N], T]) -> Callable[[N], T]:
    """A function of one node whose result is computed once and stored with the node. Where the result is the node
    itself, or the tuple of it alone, a mark is stored instead: a node that refers to itself would not be freed by
    reference counting."""
    name = f"{compute.__module__}.{compute.__qualname__}"

    @wraps(compute)
    def found(node: N) -> T:
        own = node.__dict__
        answer = own.get(name, UNKNOWN)
        if answer is UNKNOWN:
            answer = compute(node)
            own[name] = ITSELF if answer is node else ALONE if answer == (node,) else answer
        stored: Any = node if answer is ITSELF else (node,) if answer is ALONE else answer
        return stored  # type: ignore[no-any-return]   # what was computed
    return found


def kept_for(owner: Callable[[], Any]) -> Callable[[Callable[[N], T]], Callable[[N], T]]:
    """As `kept`, but a stored result is used only while `owner()` is the object that it was computed for."""
    def decorate(compute: Callable[[N], T]) -> Callable[[N], T]:
        name = f"{compute.__module__}.{compute.__qualname__}"

        @wraps(compute)
        def found(node: N) -> T:
            now = owner()
            computed_for, answer = node.__dict__.get(name, (UNKNOWN, None))
            if computed_for is not now:
                answer = compute(node)
                node.__dict__[name] = now, answer
            return answer  # type: ignore[no-any-return]   # what was computed
        return found
    return decorate


def idempotent_for(owner: Callable[[], Any]) -> Callable[[Callable[[N], N]], Callable[[N], N]]:
    """A function from nodes to nodes with f(f(x)) = f(x): its results are marked, and returned as they are while
    `owner()` is the object that they were computed for. Results of other nodes are not stored, for they may depend on
    how much work was allowed."""
    def decorate(compute: Callable[[N], N]) -> Callable[[N], N]:
        name = f"{compute.__module__}.{compute.__qualname__}"

        @wraps(compute)
        def found(node: N) -> N:
            now = owner()
            if node.__dict__.get(name, UNKNOWN) is now:
                return node
            answer = compute(node)
            answer.__dict__[name] = now
            return answer
        return found
    return decorate


def contains(node: Node, *wanted: Node) -> bool:
    """Does any of `wanted` occur in `node`?"""
    return any(n in wanted for n in node.unique())
