"""Packs values of meta and cb_kwargs with msgpack, keeping types that msgpack would lose.

Tuples, sets, dates and times, decimals, paths, enumeration members and records (`records`) are extension types: each
holds a list, a text, [module, class, member] or [module, class, fields]. A Request is what `Request.to_dict` returns.
Classes and functions of certain packages are stored by name. Objects of other classes need functions of the project
(`taught_types`). An object of any other subclass of a plain type comes back as the plain type.

Reading imports nothing that a message names, and runs no code of its classes except Requests'. A class must be an
enumeration or a record in an already imported module of certain packages. Records are filled in without their
constructors.
"""

from __future__ import annotations

import datetime
import enum
import sys
from decimal import Decimal
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final

import msgpack
import numpy as np
from scrapy import Item, Request
from scrapy.utils.request import request_from_dict

from bigcrawl.scheduler.adapter.values.known_names import class_found, find_named, is_within, name_of
from bigcrawl.scheduler.adapter.values.taught_types import dotted_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from scrapy import Spider

    from bigcrawl.scheduler.adapter.values.records import RecordKind
    from bigcrawl.scheduler.adapter.values.taught_types import TaughtType

# A number never gets another meaning, because stored requests contain it.
_TUPLE, _SET, _FROZENSET, _DATETIME, _RECORD, _DATE, _TIME, _TIMEDELTA, _DECIMAL, _ENUM = range(1, 11)
_PATH, _NAMED, _REQUEST, _TAUGHT = range(11, 15)
_NESTED_MAX = 500  # msgpack itself stops at 511, and a value that contains itself never ends

NOT_STORABLE = (TypeError, ValueError, OverflowError, RecursionError, AttributeError)
"""Raised for unstorable values; a project's function may raise anything."""


class ValueCodec:
    """Packs and reads values.

    Args:
        spider: has the callbacks of requests among the values; None for none.
        packages: those whose classes and functions may be named. None allows objects of all classes, but no class or
            function as a value.
        types: the types that the project teaches.
    """

    def __init__(
        self,
        spider: Spider | None = None,
        packages: Iterable[str] | None = None,
        types: Mapping[str, TaughtType] | None = None,
    ) -> None:
        self._spider = spider
        self._packages = None if packages is None else frozenset(packages)
        bases = {kind.__module__.partition(".")[0] for kind in type(spider).__mro__} - {"builtins"}
        self._of_methods = None if packages is None else bases.union(packages)
        self._types = types or {}

    def __repr__(self) -> str:
        return f"<ValueCodec packages={sorted(self._packages or ())} types={sorted(self._types)}>"

    def pack(self, value: object) -> bytes:
        """Return a value as bytes, or raise one of NOT_STORABLE; `find_culprit` finds the part at fault."""
        data: bytes = msgpack.packb(value, default=self._to_ext, strict_types=True)
        return data

    def unpack(self, data: bytes) -> Any:
        return msgpack.unpackb(data, raw=False, strict_map_key=False, ext_hook=self._from_ext)

    def find_culprit(self, value: object, path: str, depth: int = 0) -> tuple[str, str, str] | None:
        if depth > _NESTED_MAX:
            return f"{path[:100]}...", "is nested too deep, or holds itself", type(value).__name__
        for inner_path, inner in _parts_of(value, path):
            if culprit := self.find_culprit(inner, inner_path, depth + 1):
                return culprit
        if isinstance(value, _CONTAINERS):
            return None
        try:
            self.pack(value)
        except Exception as error:  # noqa: BLE001 - of a function that the project names
            kind = type(value).__name__
            return path, f"holds a {kind} ({error})", kind
        return None

    def _to_ext(self, value: Any) -> Any:
        if self._types and (taught := self._types.get(name := dotted_name(type(value)))) is not None:
            return msgpack.ExtType(_TAUGHT, self.pack([name, taught.to_plain(value)]))
        if isinstance(value, enum.Enum):
            return msgpack.ExtType(_ENUM, self.pack(self._pack_member(value)))
        if isinstance(value, type | FunctionType):
            return msgpack.ExtType(_NAMED, self.pack(self._pack_named(value)))
        if (kind := _kind_of(type(value))) is not None:
            fields = kind.fields_of(value)
            return msgpack.ExtType(_RECORD, self.pack([*self.name_of(type(value)), fields]))
        if isinstance(value, Request):
            return msgpack.ExtType(_REQUEST, self.pack(fields_of_request(value, self._spider, self)))
        return self._plain_ext(value)

    def _plain_ext(self, value: Any) -> Any:
        if isinstance(value, datetime.timedelta):
            return msgpack.ExtType(_TIMEDELTA, self.pack([value.days, value.seconds, value.microseconds]))
        if isinstance(value, PurePath):
            flavour = next(kind for kind in _PATHS if isinstance(value, kind))
            return msgpack.ExtType(_PATH, self.pack([flavour.__name__, str(value)]))
        for kind, (code, text_of, _) in _TEXTS.items():
            if isinstance(value, kind):
                return msgpack.ExtType(code, text_of(value).encode())
        for kind, code in _COLLECTIONS.items():
            if isinstance(value, kind):
                return msgpack.ExtType(code, self.pack([*value]))
        for kind, plain in _PLAIN.items():
            if isinstance(value, kind):
                return plain(value)
        raise TypeError(f"cannot store {type(value).__name__}")

    def name_of(self, kind: type) -> tuple[str, str]:
        module, name = name_of(kind)
        if not self._is_listed(module, kind):
            raise _not_listed(module)
        return module, name

    def class_found(self, module: str, name: str, base: type) -> type[Any] | None:
        """Return the class of this name, if it derives from `base` and may be named."""
        kind = class_found(module, name)
        return kind if kind is not None and issubclass(kind, base) and self._is_listed(module, kind) else None

    def _is_listed(self, module: str, kind: type) -> bool:
        if self._packages is None or is_within(module, self._packages):
            return True
        outermost = module.partition(".")[0]  # the objects of these classes can do nothing
        if issubclass(kind, Request | Item):
            return outermost == "scrapy"
        return issubclass(kind, enum.Enum | tuple) and outermost in sys.stdlib_module_names

    def _pack_named(self, value: type | FunctionType) -> tuple[str, str]:
        module, name = name_of(value)
        if not is_within(module, self._packages or ()):
            raise _not_listed(module)
        return module, name

    def may_call(self, function: Any) -> bool:
        if self._of_methods is None:
            return True
        return isinstance(function, MethodType) and is_within(
            str(getattr(function.__func__, "__module__", "")), self._of_methods
        )

    def _pack_member(self, value: enum.Enum) -> tuple[str, str, str | int]:
        kind = type(value)
        # A combination of flags has no name to look up.
        is_named = kind.__members__.get(value.name or "") is value
        return (*self.name_of(kind), str(value.name) if is_named else int(value.value))

    def _from_ext(self, code: int, data: bytes) -> Any:
        if code in _COLLECTION_OF_CODE:
            return _COLLECTION_OF_CODE[code](self.unpack(data))
        if code in _TEXT_OF_CODE:
            return _TEXT_OF_CODE[code](data.decode())
        read = _READERS.get(code)
        if read is None:
            raise ValueError(f"unknown extension type {code}")
        return read(self, *self.unpack(data)) if code != _REQUEST else read(self, self.unpack(data))

    def _read_named(self, module: str, name: str) -> object:
        there = find_named(module, name) if is_within(module, self._packages or ()) else None
        if there is None:
            raise ValueError(f"{module}.{name} is no class or function of BIGCRAWL_STORED_PACKAGES that is imported")
        return there

    def _read_taught(self, name: str, plain: object) -> object:
        if name not in self._types:
            raise ValueError(f"objects of {name} cannot be read: BIGCRAWL_STORED_TYPES does not have it")
        return self._types[name].from_plain(plain)

    def _read_request(self, fields: dict[str, Any]) -> Request:
        return request_of_fields(fields, self._spider, self)

    def _read_member(self, module: str, name: str, member: str | int) -> enum.Enum:
        kind: Any = self.class_found(module, name, enum.Enum)
        if kind is None:
            raise ValueError(f"the class {module}.{name} is not among the enumerations that this spider uses")
        try:
            found_member: enum.Enum = (
                kind(member) if issubclass(kind, enum.Flag) and type(member) is int else kind[member]
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"the class {module}.{name} has changed since: {error}") from error
        return found_member

    def _read_record(self, module: str, name: str, content: dict[str, Any]) -> object:
        of_record = self.class_found(module, name, object)
        kind = _kind_of(of_record) if of_record is not None and not issubclass(of_record, enum.Enum) else None
        if kind is None:
            raise ValueError(f"the class {module}.{name} is not among the records that this spider uses")
        try:
            record = kind.filled_in(of_record, content)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"the class {module}.{name} has changed since: {error}") from error
        if content:
            raise ValueError(
                f"the class {module}.{name} has changed since the request was stored: it lacks "
                f"{', '.join(map(repr, content))}"
            )
        return record


def _kind_of(found: type) -> RecordKind | None:
    from bigcrawl.scheduler.adapter.values.records import kind_of  # few crawls store objects of classes

    return kind_of(found)


def _not_listed(module: str) -> TypeError:
    return TypeError(f"BIGCRAWL_STORED_PACKAGES does not list {module}")


def _parts_of(value: object, path: str) -> Iterable[tuple[str, object]]:
    if isinstance(value, dict | Item):
        for key, inner in value.items():
            yield (f"{path}[{key!r}]" if path else str(key)), inner
            yield f"{path} key {key!r}", key
    elif isinstance(value, list | tuple | set | frozenset):
        for index, inner in enumerate(value):
            yield f"{path}[{index}]", inner


_CONTAINERS: Final = (dict, Item, list, tuple, set, frozenset)
_PATHS: Final = (Path, PurePosixPath, PureWindowsPath)
_PATH_OF_NAME: Final = {kind.__name__: kind for kind in _PATHS}

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


def fields_of_request(request: Request, spider: Spider | None, values: ValueCodec) -> dict[str, Any]:
    if type(request) is not Request:
        values.name_of(type(request))
    fields = request.to_dict(spider=spider)
    for function in (request.callback, request.errback):
        if function is not None and not values.may_call(function):
            raise ValueError(f"{function} is not a method of the spider")
    return fields


def request_of_fields(fields: dict[str, Any], spider: Spider | None, values: ValueCodec) -> Request:
    for name in ("callback", "errback"):
        named = str(fields.get(name) or "")
        if named and hasattr(spider, named) and not values.may_call(getattr(spider, named)):
            raise ValueError(f"{name} {named!r} is not a method of the spider")
    path = fields.get("_class")
    if path is None:
        return request_from_dict(fields, spider=spider)
    module, _, name = str(path).rpartition(".")
    kind = values.class_found(module, name, Request)
    if kind is None:
        raise ValueError(f"the class {path} is not among the requests that this spider uses")
    return request_from_dict({**fields, "_class": kind}, spider=spider)


def _read_path(_: ValueCodec, flavour: str, text: str) -> PurePath:
    if flavour not in _PATH_OF_NAME:
        raise ValueError(f"unknown kind of path {flavour}")
    return _PATH_OF_NAME[flavour](text)


_READERS: Final[dict[int, Callable[..., Any]]] = {
    _TIMEDELTA: lambda _, *parts: datetime.timedelta(*parts),
    _PATH: _read_path,
    _ENUM: ValueCodec._read_member,
    _RECORD: ValueCodec._read_record,
    _NAMED: ValueCodec._read_named,
    _REQUEST: ValueCodec._read_request,
    _TAUGHT: ValueCodec._read_taught,
}

PLAIN: Final = ValueCodec()
