"""Objects by their fields: Items, dataclasses, attrs, pydantic's models, named tuples. Reading runs no code of them."""

from __future__ import annotations

import dataclasses
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scrapy import Item

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_STATE: Final = ""
"""A pydantic model's further state: the names that were set, extra and private values."""
_NO_DEFAULT: Final = object()


class RecordKind(NamedTuple):
    has: Callable[[Any], bool]
    fields_of: Callable[[Any], dict[str, Any]]
    filled_in: Callable[[Any, dict[str, Any]], object]


def kind_of(found: type) -> RecordKind | None:
    return next((kind for kind in _KINDS if kind.has(found)), None)


def _new_instance(found: Any) -> Any:
    return object.__new__(found)


def _set_fields(found: type, content: dict[str, Any], defaults: Iterable[tuple[str, Callable[[], Any]]]) -> object:
    record = _new_instance(found)
    for name, default in defaults:
        object.__setattr__(record, name, _field_value(content, name, default))
    return record


def _field_value(content: dict[str, Any], name: str, default: Callable[[], Any]) -> Any:
    value = content.pop(name) if name in content else default()
    if value is _NO_DEFAULT:
        raise KeyError(name)
    return value


def _dataclass_fields(record: Any) -> dict[str, Any]:
    _new_instance(type(record))  # raises TypeError now rather than on another node
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


def _filled_dataclass(found: Any, content: dict[str, Any]) -> object:
    def default_of(field: dataclasses.Field[Any]) -> Any:
        if field.default_factory is not dataclasses.MISSING:
            return field.default_factory()
        return _NO_DEFAULT if field.default is dataclasses.MISSING else field.default

    fields = dataclasses.fields(found)
    return _set_fields(found, content, [(field.name, partial(default_of, field)) for field in fields])


def _is_attrs(found: Any) -> bool:
    return isinstance(getattr(found, "__attrs_attrs__", None), tuple)


def _attrs_fields(record: Any) -> dict[str, Any]:
    _new_instance(type(record))
    return {field.name: getattr(record, field.name) for field in type(record).__attrs_attrs__}


def _filled_attrs(found: Any, content: dict[str, Any]) -> object:
    attr: Any = sys.modules["attr"]  # imported by the class's own module

    def default_of(field: Any) -> Any:
        default = field.default
        if isinstance(default, attr.Factory):
            return _NO_DEFAULT if default.takes_self else default.factory()
        return _NO_DEFAULT if default is attr.NOTHING else default

    return _set_fields(found, content, [(field.name, partial(default_of, field)) for field in found.__attrs_attrs__])


def _is_model(found: Any) -> bool:
    return isinstance(getattr(found, "__pydantic_fields__", None), dict) and hasattr(found, "model_construct")


def _model_fields(record: Any) -> dict[str, Any]:
    fields = {name: record.__dict__[name] for name in type(record).__pydantic_fields__ if name in record.__dict__}
    fields[_STATE] = [sorted(record.__pydantic_fields_set__), record.__pydantic_extra__, record.__pydantic_private__]
    return fields


def _filled_model(found: Any, content: dict[str, Any]) -> object:
    def default_of(field: Any) -> Any:
        return _NO_DEFAULT if field.is_required() else field.get_default(call_default_factory=True)

    set_names, extra, private = content.pop(_STATE)
    fields = found.__pydantic_fields__
    record = _new_instance(found)
    values = {name: _field_value(content, name, partial(default_of, field)) for name, field in fields.items()}
    for name, value in (
        ("__dict__", values),
        ("__pydantic_fields_set__", set(set_names)),
        ("__pydantic_extra__", extra),
        ("__pydantic_private__", private),
    ):
        object.__setattr__(record, name, value)
    return record


def _filled_item(found: Any, content: dict[str, Any]) -> object:
    item = Item.__new__(found)
    Item.__init__(item)
    for name in [*content]:
        Item.__setitem__(item, name, content.pop(name))
    return item


def _filled_tuple(found: Any, content: dict[str, Any]) -> object:
    defaults = found._field_defaults
    return tuple.__new__(
        found, [_field_value(content, name, partial(defaults.__getitem__, name)) for name in found._fields]
    )


_KINDS: Final = (
    RecordKind(
        lambda found: issubclass(found, tuple) and hasattr(found, "_fields"),
        lambda record: dict(zip(record._fields, record, strict=True)),
        _filled_tuple,
    ),
    RecordKind(lambda found: issubclass(found, Item), dict, _filled_item),
    RecordKind(dataclasses.is_dataclass, _dataclass_fields, _filled_dataclass),
    RecordKind(_is_attrs, _attrs_fields, _filled_attrs),
    RecordKind(_is_model, _model_fields, _filled_model),
)
