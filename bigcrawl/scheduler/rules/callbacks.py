"""Which requests the spider can run, by its methods and BIGCRAWL_CALLBACKS; others wait on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

DAMAGED: Final = "?"

_NAME_CHARS_MAX = 60
_ROW = "must be the name of a method, =, and a method of the spider or nothing, for example parse_old=parse_item"


class Callbacks:
    """Which methods the spider has; without a spider, every method counts as existing."""

    def __init__(self, entries: Iterable[str], spider: object | None) -> None:
        self._spider = spider
        self._instead: dict[str, str] = {}
        for entry in entries:
            old, sign, new = map(str.strip, entry.partition("="))
            if not sign or not (old.isidentifier() or (old == DAMAGED and not new)):
                raise ConfigError(f"BIGCRAWL_CALLBACKS has {entry!r}; {_ROW}")
            if new and not self._is_there(new):
                raise ConfigError(f"BIGCRAWL_CALLBACKS has {entry!r}, but the spider has no method {new}; {_ROW}")
            self._instead[old] = new

    def has(self, name: str) -> bool:
        """Whether requests with this method need not wait: the spider can run them, or they are dropped."""
        return name in self._instead or (name != DAMAGED and self._is_there(name))

    def drops(self, name: str) -> bool:
        return self._instead.get(name) == ""

    def instead_of(self, name: str) -> str:
        return self._instead.get(name, name)

    def first_missing(self, names: Iterable[str]) -> str:
        """Return the first method that a request must wait for; empty if it need not wait."""
        return next((name if is_short(name) else DAMAGED for name in names if not self.has(name)), "")

    def _is_there(self, name: str) -> bool:
        if self._spider is None:
            return True
        try:
            return callable(getattr(self._spider, name, None))
        except Exception:  # noqa: BLE001 - a property of the spider may raise any error
            return False


def is_short(name: str) -> bool:
    return name.isidentifier() and len(name) <= _NAME_CHARS_MAX


ANY_CALLBACKS: Final = Callbacks((), None)
