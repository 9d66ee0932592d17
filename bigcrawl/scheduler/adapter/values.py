"""Turns values of meta and cb_kwargs into msgpack and back: plain values, and types that msgpack would lose.

Tuples, sets, dates and times, decimals, members of enumerations and records (Scrapy's Items, dataclasses, named tuples)
keep their types: each is a msgpack extension type that holds a list, a text, [module, class, member] or [module, class,
fields]. Other subclasses of dict, str and the like come back as their base class, numpy's numbers as Python's.

Reading a message imports nothing and runs no code of its classes. A class is looked up among the modules that the
process has imported. It is refused if it is neither an enumeration nor a record, and a record is filled in without its
constructor.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import sys
from decimal import Decimal
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgpack
import numpy as np
from scrapy import Item

if TYPE_CHECKING:
    from collections.abc import Callable

# A number never gets another meaning, because stored requests contain it.
_TUPLE, _SET, _FROZENSET, _DATETIME, _RECORD, _DATE, _TIME, _TIMEDELTA, _DECIMAL, _ENUM = range(1, 11)
_NESTED_MAX = 500  # msgpack itself stops at 511, and a value that contains itself never ends

NOT_STORABLE = (TypeError, ValueError, OverflowError, RecursionError, AttributeError)
"""What `packed` raises for a value that cannot be stored."""

_modules_of_the_start: frozenset[str] = frozenset()


def note_modules() -> None:
    """From now on, refuse objects of classes from modules that are imported later: other nodes may not have them."""
    global _modules_of_the_start  # noqa: PLW0603 - as sys.modules is
    _modules_of_the_start = frozenset(sys.modules)


def packed(value: object) -> bytes:
    """Return a value as bytes.

    Raises:
        one of NOT_STORABLE: the value cannot be stored; `culprit` says which part of it.
    """
    data: bytes = msgpack.packb(value, default=_to_ext, strict_types=True)
    return data


def unpacked(data: bytes) -> Any:
    """Return the value that `packed` was given.

    Raises:
        ValueError, or another of NOT_STORABLE: the bytes are damaged, or name a class that this process lacks.
    """
    return msgpack.unpackb(data, raw=False, strict_map_key=False, ext_hook=_from_ext)


def culprit(value: object, path: str, depth: int = 0) -> tuple[str, str] | None:
    """Return the key path of the first value that cannot be stored, and the reason; None if there is none."""
    if depth > _NESTED_MAX:
        return f"{path[:100]}...", "is nested too deep, or holds itself"
    if isinstance(value, dict | Item):
        for key, inner in value.items():
            if found := culprit(inner, f"{path}[{key!r}]" if path else str(key), depth + 1):
                return found
            if found := culprit(key, f"{path} key {key!r}", depth + 1):
                return found
        return None
    if isinstance(value, list | tuple | set | frozenset):
        for index, inner in enumerate(value):
            if found := culprit(inner, f"{path}[{index}]", depth + 1):
                return found
        return None
    try:
        packed(value)
    except NOT_STORABLE as error:
        return path, f"holds a {type(value).__name__} ({error})"
    return None


def _to_ext(value: Any) -> Any:
    """Return an extension type for a value whose type msgpack would lose, or the plain value of a subclass."""
    if isinstance(value, enum.Enum):
        return _member(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _record(value, dict(zip(value._fields, value, strict=True)))
    if isinstance(value, Item):
        return _record(value, dict(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        _blank(type(value))  # raises TypeError now rather than on another node
        return _record(value, {field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    if isinstance(value, datetime.timedelta):
        return msgpack.ExtType(_TIMEDELTA, packed([value.days, value.seconds, value.microseconds]))
    for kind, (code, text_of, _) in _TEXTS.items():
        if isinstance(value, kind):
            return msgpack.ExtType(code, text_of(value).encode())
    for kind, code in _COLLECTIONS.items():
        if isinstance(value, kind):
            return msgpack.ExtType(code, packed([*value]))
    for kind, plain in _PLAIN.items():
        if isinstance(value, kind):
            return plain(value)
    raise TypeError(f"cannot store {type(value).__name__}")


# A datetime is also a date, so it comes first.
_TEXTS: dict[type, tuple[int, Callable[[Any], str], Callable[[str], Any]]] = {
    datetime.datetime: (_DATETIME, datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    datetime.date: (_DATE, datetime.date.isoformat, datetime.date.fromisoformat),
    datetime.time: (_TIME, datetime.time.isoformat, datetime.time.fromisoformat),
    Decimal: (_DECIMAL, str, Decimal),
}
_COLLECTIONS: dict[type[Any], int] = {tuple: _TUPLE, frozenset: _FROZENSET, set: _SET}
_PLAIN: dict[type, Callable[[Any], object]] = {
    **{kind: kind for kind in (str, bytes, int, float, dict, list)},
    np.integer: int,
    np.floating: float,
    np.bool_: bool,
}
_TEXT_OF_CODE = {code: read for code, _, read in _TEXTS.values()}
_COLLECTION_OF_CODE = {code: kind for kind, code in _COLLECTIONS.items()}


def _record(value: object, fields: dict[str, Any]) -> msgpack.ExtType:
    return msgpack.ExtType(_RECORD, packed([*_name_of(type(value)), fields]))


def _member(value: enum.Enum) -> msgpack.ExtType:
    kind = type(value)
    # A combination of flags has no name to look up.
    is_named = kind.__members__.get(value.name or "") is value
    return msgpack.ExtType(_ENUM, packed([*_name_of(kind), value.name if is_named else int(value.value)]))


def _name_of(kind: type) -> tuple[str, str]:
    """Return the module and name by which other processes find a class."""
    module, name = kind.__module__, kind.__qualname__
    if _class_of(module, name) is not kind:
        raise TypeError(f"cannot store {kind.__name__}: move the class to the top level of its module")
    if _modules_of_the_start and module not in _modules_of_the_start:
        raise TypeError(
            f"cannot store {kind.__name__}: its module {module} was imported after the spider was opened; import it at "
            f"the top of the spider's own, so that every node has it"
        )
    return module, name


def _class_of(module: str, name: str) -> type | None:
    """Return the enumeration or record with this name; None if there is no such class, or it is something else."""
    place = sys.modules.get(module)
    # Not by `getattr`: a module's own `__getattr__`, or a lazy module, may import what it is asked for.
    found = object.__getattribute__(place, "__dict__").get(name) if issubclass(type(place), ModuleType) else None
    if not isinstance(found, type):
        return None
    is_named_tuple = issubclass(found, tuple) and hasattr(found, "_fields")
    is_storable = is_named_tuple or issubclass(found, Item | enum.Enum) or dataclasses.is_dataclass(found)
    return found if is_storable else None


def _from_ext(code: int, data: bytes) -> Any:
    if code in _COLLECTION_OF_CODE:
        return _COLLECTION_OF_CODE[code](unpacked(data))
    if code in _TEXT_OF_CODE:
        return _TEXT_OF_CODE[code](data.decode())
    if code == _TIMEDELTA:
        return datetime.timedelta(*unpacked(data))
    if code not in (_RECORD, _ENUM):
        raise ValueError(f"unknown extension type {code}")
    module, name, content = unpacked(data)
    kind = _class_of(module, name)
    if kind is None or issubclass(kind, enum.Enum) is not (code == _ENUM):
        raise ValueError(f"the class {module}.{name} is not among those that this spider uses")
    try:
        return _found_member(kind, content) if code == _ENUM else _filled_in(kind, content)
    except (KeyError, TypeError) as error:
        raise ValueError(f"the class {module}.{name} has changed since: {error}") from error


def _found_member(kind: Any, content: str | int) -> enum.Enum:
    member: enum.Enum = kind(content) if issubclass(kind, enum.Flag) and type(content) is int else kind[content]
    return member


def _filled_in(kind: Any, content: dict[str, Any]) -> object:
    """Return a record with its stored fields, and defaults for fields that its class has got since."""
    if issubclass(kind, Item):
        item = Item.__new__(kind)
        Item.__init__(item)
        for name, value in content.items():
            Item.__setitem__(item, name, value)
        return item
    if dataclasses.is_dataclass(kind):
        record: Any = _blank(kind)
        for field in dataclasses.fields(kind):
            object.__setattr__(record, field.name, _taken(content, field))
    else:
        fields = {**kind._field_defaults, **content}
        record = tuple.__new__(kind, [fields.pop(name) for name in kind._fields])
        content = {name: value for name, value in content.items() if name in fields}
    if content:
        raise KeyError(*content)
    return record


def _blank(kind: Any) -> object:
    blank: object = object.__new__(kind)
    return blank


def _taken(content: dict[str, Any], field: dataclasses.Field[Any]) -> Any:
    if field.name in content:
        return content.pop(field.name)
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    raise KeyError(field.name)
