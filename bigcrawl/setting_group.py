"""Groups of settings: a field declares the setting whose value it holds. From that, all else is made.

To add a setting, add a field in `config/` or in a feature's `settings`, run `make docs`, and say in docs/settings.md
when to change it. Rules between settings go into `derive`. A node does not start if it differs from the crawl record in
a `fixed` setting, or from live nodes in an `alike` one.
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, dataclass_transform

from bigcrawl.exceptions import ConfigError
from bigcrawl.table_rows import Setting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Given = Mapping[str, Any]  # by the names of settings, Scrapy's included
    Bounds = tuple[float | None, float | None, str]  # inclusive; the unit


class _Field(NamedTuple):
    read: Callable[[Given], Any]
    row: Setting | None = None
    title: str = ""
    nested_group: Any = None


def setting(
    name: str,
    default: object,
    meaning: str,
    bounds: Bounds = (None, None, ""),
    *,
    kind: type | None = None,
    choices: tuple[str, ...] = (),
    fixed: bool = False,
    alike: bool = False,
    has_file: bool = False,
    title: str = "",
    read: Callable[[Any], Any] | None = None,
    parse: tuple[Callable[[str], Any], str] | None = None,
) -> Any:
    """Declare the setting of a field.

    On the settings page, `title` heads this setting and those below. `read` makes the value. `parse` is a function for
    the text, or for each in a list, that may raise ValueError, and an example for the error message.
    """
    kind = kind or (str if default is None else type(default))
    row = Setting(name, default, kind, meaning, bounds[2], *bounds[:2], choices, fixed, alike, has_file)
    if parse is not None:
        one = partial(parsed, name, read=parse[0], example=parse[1])
        read = (lambda texts: tuple(map(one, texts))) if kind is list else one
    elif read is None:
        read = _tuple if kind is list else _dict if kind is dict else _or_none if default is None else None
    return _Field((lambda given: read(given[name])) if read else itemgetter(name), row, title)


def seconds(name: str, default: float, meaning: str, bounds: tuple[float, float], **more: Any) -> Any:
    return setting(name, default, meaning, (*bounds, "s"), read=to_ms, **more)


def derived(default: object = None) -> Any:
    return _Field(lambda given: default)


def nested_group(group: Any) -> Any:
    return _Field(group.read, nested_group=group)


def to_ms(value_s: float) -> int:
    return round(value_s * 1000)


def parsed(name: str, text: str, read: Callable[[str], Any], example: str) -> Any:
    try:
        return read(text)
    except ValueError as error:
        raise ConfigError(f"{name} has {text!r}, which cannot be read: {error}; e.g. {example}") from None


@dataclass_transform(frozen_default=True)
class Group:
    """A group of frozen fields. No code is generated, which would slow down every start."""

    fields: ClassVar[dict[str, _Field]]

    def __init_subclass__(cls) -> None:
        cls.fields = {name: field for name, field in vars(cls).items() if isinstance(field, _Field)}
        for name in cls.fields:
            delattr(cls, name)

    def __init__(self, *values: Any, **named: Any) -> None:
        named.update(zip(self.fields, values, strict=False))
        for name in self.fields.keys() ^ named.keys():
            if name not in self.fields:
                raise TypeError(f"{type(self).__name__} has no field {name}")
            read, row, *_ = self.fields[name]
            named[name] = read({row.name: row.default} if row else {})
        vars(self).update(named)

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.fields)})"

    @classmethod
    def rows(cls) -> Iterator[tuple[str, Setting]]:
        title = ""
        for field in cls.fields.values():
            title = field.title or title
            if field.nested_group is not None:
                yield from field.nested_group.rows()
            elif field.row is not None:
                yield title, field.row

    @classmethod
    def read(cls, given: Given) -> Self:
        return cls(**{name: field.read(given) for name, field in cls.fields.items()}).derive(given)

    def derive(self, given: Given) -> Self:
        """Apply rules between settings; raise ConfigError for values that do not go together."""
        return self

    def replace(self, **changes: Any) -> Self:
        return type(self)(**{**vars(self), **changes})


def _tuple(items: list[str] | None) -> tuple[str, ...]:
    return tuple(items or ())


def _dict(table: dict[str, Any] | None) -> dict[str, Any]:
    return table or {}


def _or_none(text: str | None) -> str | None:
    return text or None
