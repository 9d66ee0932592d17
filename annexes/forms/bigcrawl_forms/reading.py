"""Reads the forms of a page in one pass, without a tree; the cost is linear in the bytes of the page.

Rules for editing: each expression is possessive and consumes what it has begun, if need be to the end of the page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from bigcrawl.links import decoded_start
from bigcrawl.markup import attributes_of, text_within

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bigcrawl.links import Page

PAGE_BYTES_MAX: Final = 1 << 20
TAGS_MAX: Final = 20_000
FORMS_MAX: Final = 30
FIELDS_MAX: Final = 60
OPTIONS_MAX: Final = 300
VALUE_CHARS_MAX: Final = 1_000
_TAG_CHARS_MAX: Final = 8 << 10
_LABEL_CHARS_MAX: Final = 200

_END: Final = r"(?=[\t\n\f\r />])"
_WRITTEN: Final = r"(?:[^>\"'=]++|=[\t\n\f\r ]*+(?:\"[^\"]*+\"?+|'[^']*+'?+)?+|[\"'])*+"
_next_tags = re.compile(
    rf"<!--(?:[^-]++|-(?!->))*+(?:-->)?+"
    rf"|<(?P<raw>(?ai:script|style|template|noframes|noembed|iframe|title|xmp)){_END}"
    rf"(?:[^<]++|<(?!/(?ai:(?P=raw)){_END}))*+"
    rf"|<(?P<area>(?ai:textarea)){_END}(?:[^<]++|<(?!/(?ai:textarea){_END}))*+"
    rf"|<(?P<close>/?+)(?P<name>(?ai:form|input|select|option|button|label|legend)){_END}"
    rf"(?P<written>{_WRITTEN})>?+"
    rf"|</?+[a-zA-Z]{_WRITTEN}>?+"
).finditer


@dataclass(slots=True)
class Field:
    """An input of a form."""

    kind: str
    """The type of an input in lower case, or `select`, `textarea`, `submit`."""
    name: str
    value: str = ""
    """What is sent if nobody changes the control."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    options: list[tuple[str, str]] = field(default_factory=list)
    """Values and texts of a select, in page order."""
    is_on: bool = True
    """Whether it is sent at all: not an unchecked box, and not disabled."""


@dataclass(slots=True)
class Form:
    """A form as a page declares it."""

    attributes: Mapping[str, str]
    fields: list[Field] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    """Texts of its labels, legends and buttons."""
    is_cut: bool = False
    """Whether it has more than is read."""


def forms_of(page: Page) -> list[Form]:
    """Return the forms of an HTML page in order, at most `FORMS_MAX`.

    A form that is not closed reaches to the end of the page. A control that names another form by `form=` is that
    form's.
    """
    return _Reader(decoded_start(page, PAGE_BYTES_MAX)).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._forms: list[Form] = []
        self._form: Form | None = None
        self._select: Field | None = None
        self._loose: list[tuple[str, Field]] = []  # controls with `form=`, which may stand before their form

    def read(self) -> list[Form]:
        has_room = True
        for number, (closes, name, attributes, end) in enumerate(self._tags()):
            if number >= TAGS_MAX or len(self._forms) > FORMS_MAX:
                has_room = False
                break
            if name == "form":
                self._begin_or_end_form(attributes, closes=closes)
            elif closes:
                self._select = None if name == "select" else self._select
            elif name == "option":
                self._add_option(attributes, end)
            elif name in ("label", "legend"):
                self._add_label(name, end)
            else:
                self._add_control(name, attributes, end)
        if self._form is not None and not has_room:
            self._form.is_cut = True
        for form_id, control in self._loose:
            for form in self._forms:
                if form_id and form.attributes.get("id") == form_id:
                    _add_field(form, control)
        return self._forms[:FORMS_MAX]

    def _tags(self) -> Iterator[tuple[bool, str, dict[str, str], int]]:
        for found in _next_tags(self._text):
            name = found["name"]
            if found["area"] and self._form is not None:
                _add_field(self._form, Field("textarea", ""))
            elif name is not None:
                written = found["written"]
                if len(written) > _TAG_CHARS_MAX and self._form is not None:
                    self._form.is_cut = True
                yield bool(found["close"]), name.lower(), attributes_of(written[:_TAG_CHARS_MAX]), found.end()

    def _begin_or_end_form(self, attributes: dict[str, str], *, closes: bool) -> None:
        if closes:
            self._form = self._select = None
        elif self._form is None:  # HTML ignores a form within a form
            self._form = Form(attributes)
            self._forms.append(self._form)

    def _add_control(self, name: str, attributes: dict[str, str], end: int) -> None:
        kind = name
        if name == "input":
            kind = attributes.get("type", "").strip().lower() or "text"
        elif name == "button":
            kind = attributes.get("type", "").strip().lower() or "submit"
            self._add_label(name, end)
        checked = "checked" in attributes if kind in ("checkbox", "radio") else True
        value = attributes.get("value", "on" if kind in ("checkbox", "radio") else "")
        control = Field(
            kind, attributes.get("name", ""), value, attributes, is_on=checked and "disabled" not in attributes
        )
        if kind in ("submit", "image") and name == "input" and self._form is not None:
            self._form.labels.append(value or attributes.get("alt", ""))
        if "form" in attributes:
            if len(self._loose) < FIELDS_MAX:
                self._loose.append((attributes["form"], control))
        elif self._form is not None:
            _add_field(self._form, control)
        self._select = control if kind == "select" else None

    def _add_option(self, attributes: dict[str, str], end: int) -> None:
        select = self._select
        if select is None or "disabled" in attributes:
            return
        text = self._text_until_tag(end)
        value = attributes.get("value", text)
        if len(select.options) >= OPTIONS_MAX or len(value) > VALUE_CHARS_MAX:
            return
        if not select.options or "selected" in attributes:
            select.value = value
        select.options.append((value, text))

    def _add_label(self, name: str, end: int) -> None:
        if self._form is not None and len(self._form.labels) < FIELDS_MAX:
            part = self._text[end : end + _LABEL_CHARS_MAX]
            closing = part.lower().find(f"</{name}")
            self._form.labels.append(text_within(part, 0, closing if closing >= 0 else len(part)))

    def _text_until_tag(self, end: int) -> str:
        part = self._text[end : end + _LABEL_CHARS_MAX]
        closing = part.find("<")
        return text_within(part, 0, closing if closing >= 0 else len(part))


def _add_field(form: Form, control: Field) -> None:
    if len(form.fields) >= FIELDS_MAX or len(control.name) + len(control.value) > VALUE_CHARS_MAX:
        form.is_cut = True
    else:
        form.fields.append(control)
