"""Converts a project's settings to their declared types, and checks their bounds."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bigcrawl.exceptions import ConfigError
from bigcrawl.json_text import read_json

if TYPE_CHECKING:
    from bigcrawl.table_rows import Setting

PREFIX = "BIGCRAWL_"

_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def refuse_unknown(names: Iterable[object], known: Iterable[str]) -> None:
    """Raise ConfigError for a name that begins with BIGCRAWL_ but is not a setting."""
    for name in names:
        if isinstance(name, str) and name.startswith(PREFIX) and name not in known:
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]}?" if close else "docs/settings.md lists those that exist"
            raise ConfigError(f"unknown setting {name}; {hint}")


def read_value(setting: Setting, raw: object) -> Any:
    """Return a setting's checked value, for None the default. Raises ConfigError for a wrong type or value."""
    if raw is None:
        return setting.default
    try:
        value = _converted(setting, raw)
    except (TypeError, ValueError):
        raise ConfigError(f"{setting.name} is {raw!r}; must be {_requirement_text(setting)}") from None
    out_of_choices = bool(setting.choices) and value not in setting.choices
    too_low = setting.low is not None and value < setting.low
    too_high = setting.high is not None and value > setting.high
    if out_of_choices or too_low or too_high:
        raise ConfigError(f"{setting.name} is {raw!r}; must be {_requirement_text(setting)}")
    return value


def _converted(setting: Setting, raw: object) -> Any:
    if setting.type is bool:
        word = str(raw).strip().lower()
        return _WORDS[word] if word in _WORDS else _raise_value_error()
    if setting.type is int:
        if isinstance(raw, float) and not raw.is_integer():
            _raise_value_error()
        return int(str(raw).strip()) if isinstance(raw, str) else int(raw)  # type: ignore[call-overload]
    if setting.type is float:
        number = float(raw)  # type: ignore[arg-type]
        return number if math.isfinite(number) else _raise_value_error()
    if setting.type is dict:
        return _parse_table(raw)
    if setting.type is list:
        return _parse_list(setting, raw)
    return str(raw).strip()


def _parse_table(raw: Any) -> dict[str, dict[str, object]]:
    if isinstance(raw, str):
        raw = read_json(raw)
    if not isinstance(raw, Mapping) or not all(isinstance(name, str) for name in raw):
        _raise_value_error()
    return {name: dict(row) if isinstance(row, Mapping) else _raise_value_error() for name, row in raw.items()}


def _parse_list(setting: Setting, raw: Any) -> list[str]:
    if isinstance(raw, str):
        raw = _list_of_text(setting, raw.strip())
    if not isinstance(raw, list | tuple | set | frozenset) or not all(isinstance(item, str) for item in raw):
        _raise_value_error()
    return [item.strip() for item in raw if item.strip()]


def _list_of_text(setting: Setting, text: str) -> Any:
    if text.startswith("["):
        try:
            return read_json(text)
        except ValueError:
            if setting.has_file:
                raise
            # An IPv6 address with a port also begins with a bracket.
    if setting.has_file:
        return _lines_of(setting, text) if text else []
    return text.split(",")


def _lines_of(setting: Setting, path: str) -> list[str]:
    """Return the lines without comments. A comment starts at a `#` that begins the line or follows a blank."""
    from bigcrawl.text_files.reading import BLANKS, lines, read_text

    try:
        text = read_text(Path(path))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{setting.name} is {path!r}, a file that cannot be read: {error}") from None
    return [re.split(r"(?:^|\s)#", line, maxsplit=1)[0].strip(BLANKS) for line in lines(text)]


def _raise_value_error() -> Any:
    raise ValueError


def _requirement_text(setting: Setting) -> str:
    if setting.choices:
        return "one of " + ", ".join(setting.choices)
    if setting.type is dict:
        return 'a table of tables, such as {"example.com": {"budget": 500}}, or that in JSON'
    if setting.type is list:
        if setting.has_file:
            return 'a list such as ["example.com"], that in JSON, or the name of a file with one entry a line'
        return "a list of texts, that in JSON, or one text with commas between them"
    kind = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}[setting.type]
    bounds = ""
    if setting.low is not None and setting.high is not None:
        bounds = f" from {setting.low:g} to {setting.high:g}"
    elif setting.low is not None:
        bounds = f" of at least {setting.low:g}"
    return f"{kind}{bounds}{' ' + setting.unit if setting.unit else ''}, e.g. {setting.default}"
