"""Classes of plain data, declared as with `dataclasses` but made far more quickly: a process that compiles one small
program takes longer to make its classes than to compile it. Imports nothing of hilo.

    @record(frozen=True)
    class Tile:
        rows: int
        vectors: int = 2
        parts: list[int] = field(default_factory=list)

The first objects of a class are filled field by field; when there are some, `__init__` is written out as Python (it
ends with `__post_init__`, if there is one). The other methods are shared by all classes.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")
_NO_DEFAULT = object()
_FEW = 160  # objects of a class that are filled in less time than it takes to write its `__init__`


class Field:
    """A default that is made anew for each object (`default_factory`), or a plain one; whether `repr` shows the field,
    and equality looks at it."""

    __slots__ = ("compare", "default", "default_factory", "repr")

    def __init__(self, default: Any, default_factory: Callable[[], Any] | None, repr: bool, compare: bool) -> None:  # noqa: A002
        self.default = default
        self.default_factory = default_factory
        self.repr = repr
        self.compare = compare


def field(*, default: Any = _NO_DEFAULT, default_factory: Any = None, repr: bool = True, compare: bool = True) -> Any:  # noqa: A002
    """See `Field`."""
    return Field(default, default_factory, repr, compare)


@overload
@dataclass_transform(field_specifiers=(field,))
def record(cls: type[T], /) -> type[T]: ...


@overload
@dataclass_transform(field_specifiers=(field,))
def record(*, frozen: bool = False, eq: bool = True) -> Callable[[type[T]], type[T]]: ...


def record(cls: Any = None, /, *, frozen: bool = False, eq: bool = True) -> Any:
    """Class decorator. Records are equal when they are of one class and all fields are; those that are not frozen have
    no hash. `frozen`: fields cannot be set. `eq=False`: an object is equal to itself alone."""
    return _make(cls, frozen, eq) if cls is not None else lambda c: _make(c, frozen, eq)


def replace(value: T, **changes: Any) -> T:
    """A record like `value`, with other values of some fields."""
    return type(value)(**{**{name: getattr(value, name) for name in _fields(value)}, **changes})


def _fields(value: Any) -> dict[str, Field]:
    return value.__record_fields__


def _make(cls: Any, frozen: bool, eq: bool) -> Any:
    fields: dict[str, Field] = dict(getattr(cls, "__record_fields__", {}))
    own = cls.__dict__
    for name in own.get("__annotations__", ()):
        default = own.get(name, _NO_DEFAULT)
        if not isinstance(default, Field):
            fields[name] = Field(default, None, True, True)
            continue
        fields[name] = default
        if default.default_factory is None:
            setattr(cls, name, default.default)
        else:
            delattr(cls, name)
    cls.__record_fields__ = fields
    names = cls.__match_args__ = tuple(fields)
    then = hasattr(cls, "__post_init__")
    put = object.__setattr__
    made = 0

    def first(self: Any, *args: Any, **kwargs: Any) -> None:
        nonlocal made
        made += 1
        whole = not kwargs and len(args) == len(names)
        values = args if whole else _complete(fields, names, args, kwargs) if made <= _FEW else None
        if made > _FEW or values is None:
            cls.__init__ = _written_init(cls, fields, frozen)
            cls.__init__(self, *args, **kwargs)
            return
        for name, value in zip(names, values):
            put(self, name, value)
        if then:
            self.__post_init__()

    if "__init__" not in own:
        cls.__init__ = first
    if "__repr__" not in own:
        cls.__repr__ = _repr
    if frozen:
        cls.__setattr__ = cls.__delattr__ = _refuse
    if eq and "__eq__" not in own:
        cls.__record_key__ = staticmethod(_key(fields))
        cls.__eq__ = _eq
        cls.__hash__ = own.get("__hash__") or (_hash if frozen else None)
    return cls


def _complete(fields: dict[str, Field], names: tuple[str, ...], args: tuple[Any, ...],
              kwargs: dict[str, Any]) -> list[Any] | None:  # fmt: skip
    """The values of all fields of a new object; None if these are not its arguments."""
    if len(args) > len(names):
        return None
    values = list(args)
    taken = 0
    for name in names[len(args) :]:
        if name in kwargs:
            values.append(kwargs[name])
            taken += 1
            continue
        f = fields[name]
        if f.default is _NO_DEFAULT and f.default_factory is None:
            return None
        values.append(f.default if f.default_factory is None else f.default_factory())
    return values if taken == len(kwargs) else None


def _written_init(cls: type, fields: dict[str, Field], frozen: bool) -> Callable[..., None]:
    names: dict[str, Any] = {"put": object.__setattr__, "NO": _NO_DEFAULT}
    parameters, body = [], []
    for name, f in fields.items():
        value = name
        if f.default_factory is not None:
            names[f"make_{name}"] = f.default_factory
            parameters.append(f"{name}=NO")
            value = f"make_{name}() if {name} is NO else {name}"
        elif f.default is not _NO_DEFAULT:
            names[f"default_{name}"] = f.default
            parameters.append(f"{name}=default_{name}")
        else:
            parameters.append(name)
        body.append(f" put(self, {name!r}, {value})" if frozen else f" self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    exec(f"def __init__(self, {', '.join(parameters)}):\n" + "\n".join(body or [" pass"]), names)
    init = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _key(fields: dict[str, Field]) -> Callable[[Any], Any]:
    compared = [name for name, f in fields.items() if f.compare]
    return attrgetter(*compared) if compared else lambda value: ()


def _eq(self: Any, other: object) -> Any:
    if self is other:
        return True
    if other.__class__ is not self.__class__:
        return NotImplemented
    key = self.__record_key__
    return key(self) == key(other)


def _hash(self: Any) -> int:
    return hash(self.__record_key__(self))


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name, f in _fields(self).items() if f.repr)
    return f"{self.__class__.__qualname__}({shown})"


def _refuse(self: Any, name: str, *value: Any) -> None:
    raise AttributeError(f"{self.__class__.__name__} is frozen: {name} cannot change")
