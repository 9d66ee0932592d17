"""Reads the entries of an XML list, well-formed or not, in slices, without a tree, at a cost linear in its bytes.

Namespaces, CDATA, comments, references and internal entities follow XML 1.0 and Namespaces. Errors that a parser would
refuse are read as far as they make sense:

- an element without an end tag ends with the element around it, or where another value or entry begins; an end tag
  without a start tag is ignored, and so is text before and after the document;
- `&` and `<` that begin nothing are text; control characters are dropped; names of HTML, such as `&nbsp;`, need no
  declaration;
- an undeclared prefix is a namespace of its own.

Entities cannot expand without bound: their values are short texts without markup or references. Nothing is fetched.

Rules for editing: no expression reads beyond the next `<`, and a failed search is not repeated.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import repeat
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.markup import attributes_of, resolved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Match = Callable[[bytes, int, int], re.Match[bytes] | None]

SLICE_BYTES: Final = 32 << 10
"""Bytes read at a time: about a thousand values."""
VALUE_BYTES_MAX: Final = 64 << 10
"""How much of a value is kept; no setting allows a longer URL."""
DEPTH_MAX: Final = 256
_TAG_BYTES_MAX: Final = 64 << 10
_PREFIXES_MAX: Final = 64
_ENTITIES_MAX: Final = 64
_DOCTYPE_BYTES_MAX: Final = 64 << 10
_SKIPPED_FOR_A_TAG: Final = 8  # so many skipped tags count as one
_UNKNOWN_TAGS: Final = 3  # an unknown tag that cannot be skipped, or a lone `<`, counts as this many
_DECLARATION_TAGS: Final = 5  # a namespace or base counts as this many
_MISSING_END_NAMES: Final = 2  # a missing end counts as this many entries or values
_VALUES_MAX: Final = 1_000
_BASE_CHARS_MAX: Final = 8 << 10

_NAME: Final = rb"[A-Za-z_\x80-\xff][^\s<>/:=\"'&!?]*+"
_tag_at = re.compile(
    rb"<(/?+)(?:(%b):)?+(%b)(?=[\s/>])((?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+>|[^<>]*+>)" % (_NAME, _NAME)
).match
_spaces_in = re.compile(rb"\sxmlns(?::([\w.-]{1,64}+))?+\s*+=\s*+[\"']([^\"'<>]*+)").findall
_doctype_at = re.compile(
    rb"<!DOCTYPE[^<>\[]*+(?:\[((?:[^\]\"']++|\"[^\"]*+\"|'[^']*+')*+)\]\s*+)?+>", re.IGNORECASE
).match
# An entity whose value is anything but a short text is empty.
_entities_in = re.compile(rb"<!ENTITY\s++([\w.-]{1,64}+)\s++(?:[\"']([^\"'<&%]{0,1000}+)[\"']\s*+>)?+").findall
_plain_values_in = re.compile(rb"<([^</>]++)>([^<]*+)").findall
_find_entity = re.compile(r"&([\w.-]{1,64}+);").sub
_BLANKS: Final = b" \t\r\n"
_CONTROLS: Final = bytes(code for code in range(32) if code not in _BLANKS)
_COMMENT, _LITERAL = b"<!--", b"<![CDATA["
_COMMENT_END, _LITERAL_END, _INSTRUCTION_END, _END = b"-->", b"]]>", b"?>", b">"
_HTML: Final = b"html"


class ElementValue(NamedTuple):
    """An element of an entry. Its text is without inner tags, and cut at `VALUE_BYTES_MAX`."""

    space: bytes
    name: bytes
    text: str = ""
    written: bytes = b""
    is_cut: bool = False
    bases: tuple[str, ...] = ()

    def attributes(self) -> dict[str, str]:
        return _attributes(self.written)


class EntryRecord(NamedTuple):
    space: bytes
    values: list[ElementValue]


class ListShape(NamedTuple):
    """The format of a kind of list.

    Attributes:
        roots: names of the first element.
        values: names of the elements right below an entry that are kept.
        first: a value that every entry has once: another one begins another entry, and the tags of entries may be
            missing.
            Empty: there is none.
        is_text: the names of entries whose own text is their first value, if they lack one.
    """

    roots: frozenset[bytes]
    entries: frozenset[bytes]
    values: frozenset[bytes]
    first: bytes = b""
    is_text: frozenset[bytes] = frozenset()

    @property
    def names(self) -> frozenset[bytes]:
        return self.roots | self.entries | self.values


class ListReader:
    """Reads a list, in UTF-8, slice by slice.

    `tags_max` limits its tags, `named_max` its entries and values, and `references_max` the references in values,
    except `&amp;`.
    """

    def __init__(self, body: bytes, shape: ListShape, tags_max: int, named_max: int, references_max: int) -> None:
        self.root = b""
        self.space = b""
        self._body = body
        self._shape = shape
        self._names = shape.names
        self._plain_value_at, self._plain_record_at, self._skip = _compile_expressions(shape)
        self._tags_left, self._named_left, self._references_left = tags_max, named_max, references_max
        self._at = 0
        self._stack: list[tuple[bytes, bytes]] = []
        self._scopes: list[tuple[int, bytes, bytes | None]] = []  # depth, prefix, what it meant outside
        self._bases: list[tuple[int, str]] = []
        self._too_deep = 0
        self._spaces: dict[bytes, bytes] = {b"": b""}
        self._entities: dict[str, str] = {}
        self._root_depth = 0
        self._found: list[EntryRecord] = []
        self._record: EntryRecord | None = None
        self._record_depth = 0
        self._is_loose = False  # a record without tags of its own
        self._takes_text = False
        self._first: bytes | None = None
        self._value: tuple[bytes, bytes, bytes, tuple[str, ...]] | None = None
        self._value_depth = 0
        self._pieces: list[bytes | str] = []
        self._room = 0
        self._marks: dict[bytes, int] = {}  # where each was found last
        self._has_doctype = False

    @property
    def is_at_end(self) -> bool:
        return self._at >= len(self._body) or self._is_enough()

    @property
    def limit(self) -> str:
        if self._at >= len(self._body) or not self._is_enough():
            return ""
        return "tags" if self._references_left > 0 else "references"

    def _is_enough(self) -> bool:
        return self._tags_left <= 0 or self._named_left <= 0 or self._references_left <= 0

    def read(self, *, to_root: bool = False) -> list[EntryRecord]:
        """Read the next slice, or with `to_root` up to the root element. Return the entries that end in it."""
        body, end = self._body, min(self._at + SLICE_BYTES, len(self._body))
        while self._at < end and not self._is_enough() and not (to_root and self.root):
            opening = body.find(b"<", self._at)
            stop = opening if opening >= 0 else len(body)
            if stop > self._at:
                self._add_text(self._at, stop)
            self._at = stop
            if opening >= 0:
                self._tags_left -= 1
                self._read_markup(opening)
        if self.is_at_end:
            self._close_elements(0)
        found, self._found = self._found, []
        return found

    def _read_markup(self, opening: int) -> None:
        body = self._body
        if self._record is None:
            record = self._plain_record_at(body, opening, opening + _TAG_BYTES_MAX) if self.root else None
            if record is not None and not self._too_deep and self._read_plain_record(record):
                return
        elif self._value is None and len(self._stack) == self._record_depth:
            plain = self._plain_value_at(body, opening, opening + _TAG_BYTES_MAX)
            if plain is not None:
                self._read_plain_value(plain)
                return
        tag = _tag_at(body, opening, opening + _TAG_BYTES_MAX)
        if tag is not None:
            self._at = tag.end()
            closing, prefix, name, written = tag.groups(b"")
            if closing:
                self._end_element(prefix, name)
            elif self._value is not None or name in self._names or not self.root or not self._skip_others(opening):
                self._begin_element(prefix, name, written)
        elif body.startswith(_COMMENT, opening):
            self._at = self._find_next(_COMMENT_END, opening) + len(_COMMENT_END)
        elif body.startswith(_LITERAL, opening):
            closed = self._find_next(_LITERAL_END, opening)
            self._add_text(opening + len(_LITERAL), closed, is_literal=True)
            self._at = closed + len(_LITERAL_END)
        elif body.startswith(b"<!", opening):
            self._read_declaration(opening)
        elif body.startswith(b"<?", opening):
            ends = (_END,) if body.startswith(b"<?xml ", opening) else (_INSTRUCTION_END, _END)
            closed = next((end for end in map(self._find_next, ends, repeat(opening)) if end < len(body)), opening + 1)
            self._at = body.find(_END, closed) + 1 or len(body)
        else:
            self._tags_left -= _UNKNOWN_TAGS - 1
            self._add_text(opening, opening + 1)
            self._at = opening + 1

    def _skip_others(self, opening: int) -> bool:
        """Skip irrelevant elements, such as images, of which there may be many. Return whether there were any."""
        skipped = self._skip(self._body, opening, opening + SLICE_BYTES)
        assert skipped is not None, "it may be nothing"
        if skipped.end() <= opening:
            return False
        self._at = skipped.end()
        self._tags_left -= self._body.count(b"<", opening, self._at) // _SKIPPED_FOR_A_TAG
        return True

    def _find_next(self, mark: bytes, at: int) -> int:
        """Return the position of the next `mark`; the end of the body if there is none."""
        if self._marks.get(mark, -1) < at:
            found = self._body.find(mark, at)
            self._marks[mark] = found if found >= 0 else len(self._body)
        return self._marks[mark]

    def _read_declaration(self, opening: int) -> None:
        doctype = None if self._has_doctype else _doctype_at(self._body, opening, opening + _DOCTYPE_BYTES_MAX)
        self._has_doctype = True  # or a declaration in its place
        if doctype is None:
            self._at = self._find_next(_END, opening) + 1
            return
        self._at = doctype.end()
        for name, value in _entities_in(doctype[1] or b"")[:_ENTITIES_MAX]:
            self._entities.setdefault(name.decode(), value.decode("utf-8", "replace"))

    def _begin_element(self, prefix: bytes, name: bytes, written: bytes) -> None:
        depth = len(self._stack) + 1
        if b"xmlns" in written and not self._too_deep:
            self._tags_left -= _DECLARATION_TAGS
            self._declare_namespaces(depth, written)
        if b"xml:base" in written and not self._too_deep:
            self._tags_left -= _DECLARATION_TAGS
            self._bases.append((depth, _attributes(written).get("xml:base", "")[:_BASE_CHARS_MAX]))
        if name in self._names and not self._too_deep:
            self._named_left -= 1
            depth = self._begin_named(prefix, name, written, depth)
        elif not self.root and name.lower() == _HTML:
            self._tags_left = 0
        else:
            self._tags_left -= _UNKNOWN_TAGS - 1
        if written.endswith(b"/>"):
            self._close_elements(depth - 1)
        elif depth > DEPTH_MAX or self._too_deep:
            self._too_deep += 1
        else:
            self._stack.append((prefix, name))

    def _begin_named(self, prefix: bytes, name: bytes, written: bytes, depth: int) -> int:
        """Begin a root, an entry or a value. Return its depth, once elements without an end tag have been ended."""
        shape = self._shape
        space = self._spaces.get(prefix, prefix + b":")
        if not self.root:
            if name in shape.roots:
                self.root, self.space, self._root_depth = name, space, depth
            return depth
        if name in shape.entries:
            if self._record is not None and not self._is_loose and space != self._record.space:
                return depth
            if self._record is not None:
                self._named_left -= 0 if self._is_loose else _MISSING_END_NAMES
                depth = self._close_elements(self._record_depth - (not self._is_loose), depth)
            if self._record is not None:
                self._end_record()
            self._open_value(space, depth)
            self._takes_text = name in shape.is_text
        elif name in shape.values:
            if self._value is not None and space == self._value[0]:
                self._named_left -= _MISSING_END_NAMES
                depth = self._close_elements(self._value_depth - 1, depth)
            if self._record is None and shape.first and depth == self._root_depth + 1:
                self._open_value(space, self._root_depth)
                self._is_loose = True
            if self._record is not None and self._value is None and depth == self._record_depth + 1:
                self._begin_value(space, name, written, depth)
        return depth

    def _open_value(self, space: bytes, depth: int) -> None:
        self._record, self._record_depth, self._first = EntryRecord(space, []), depth, None
        self._room = VALUE_BYTES_MAX

    def _read_plain_record(self, plain: re.Match[bytes]) -> bool:
        """Read an entry of plain values, in a third of the time; for any other, read nothing and return False."""
        written = plain[2].translate(None, _CONTROLS)
        found = _plain_values_in(written)
        first = self._shape.first
        if first and [name for name, _ in found].count(first) != 1:
            return False
        self._at = plain.end()
        self._tags_left -= 2 * len(found) + 1
        self._named_left -= len(found) + 1
        space, bases = self._spaces[b""], self._bases_now()
        read = self._resolve_references if b"&" in written else _decode_utf8
        values = [ElementValue(space, name, read(text), _END, False, bases) for name, text in found]
        self._found.append(EntryRecord(space, values))
        return True

    def _read_plain_value(self, plain: re.Match[bytes]) -> None:
        """Read a value without inner tags or other complications, as most are."""
        self._at = plain.end()
        self._named_left -= 1
        self._tags_left -= 1
        prefix, _, name = plain[1].rpartition(b":")
        self._record_first(space := self._spaces.get(prefix, prefix + b":"), name)
        self._keep_value(
            ElementValue(space, name, self._resolve_references(plain[3]), plain[2], bases=self._bases_now())
        )

    def _begin_value(self, space: bytes, name: bytes, written: bytes, depth: int) -> None:
        self._record_first(space, name)
        self._value = (space, name, written, self._bases_now())
        self._value_depth, self._pieces, self._room = depth, [], VALUE_BYTES_MAX

    def _record_first(self, space: bytes, name: bytes) -> None:
        """Begin another entry if a `first` value comes, and the current entry has one already."""
        if name != self._shape.first:
            return
        if self._first == space:
            assert self._record is not None
            self._found.append(self._record)
            self._record = EntryRecord(self._record.space, [])
        self._first = space

    def _bases_now(self) -> tuple[str, ...]:
        return tuple([base for _, base in self._bases]) if self._bases else ()

    def _keep_value(self, value: ElementValue) -> None:
        assert self._record is not None
        if len(self._record.values) < _VALUES_MAX:
            self._record.values.append(value)

    def _end_element(self, prefix: bytes, name: bytes) -> None:
        if self._too_deep:
            self._too_deep -= 1
            return
        stack, key = self._stack, (prefix, name)
        for depth in range(len(stack) - 1, -1, -1):
            if stack[depth] == key:
                self._close_elements(depth)
                return

    def _close_elements(self, depth: int, begun: int = 0) -> int:
        """End all elements deeper than `depth`. Return the depth, at most `begun`, of an element that begins now."""
        if self._value is not None and self._value_depth > depth:
            self._end_value()
        if self._record is not None and self._record_depth > depth:
            self._end_record()
        while self._scopes and self._scopes[-1][0] > depth:
            _, prefix, meant = self._scopes.pop()
            if meant is None:
                del self._spaces[prefix]
            else:
                self._spaces[prefix] = meant
        while self._bases and self._bases[-1][0] > depth:
            self._bases.pop()
        del self._stack[depth:]
        return min(begun, depth + 1)

    def _end_value(self) -> None:
        assert self._value is not None
        space, name, written, bases = self._value
        self._value = None
        self._keep_value(ElementValue(space, name, "".join(self._decoded_pieces()), written, self._room < 0, bases))
        self._pieces = []

    def _end_record(self) -> None:
        record, self._record = self._record, None
        assert record is not None
        if self._takes_text and not any(value.name == self._shape.first for value in record.values):
            text = "".join(self._decoded_pieces())
            record.values.append(ElementValue(record.space, self._shape.first, text, is_cut=self._room < 0))
        self._pieces, self._is_loose, self._takes_text = [], False, False
        if record.values:
            self._found.append(record)

    def _add_text(self, start: int, stop: int, *, is_literal: bool = False) -> None:
        if self._room < 0 or (self._value is None and not self._takes_text):
            return
        written = self._body[start : min(stop, start + self._room + 1)]
        if not written:
            return
        self._room -= len(written)
        self._pieces.append(written.translate(None, _CONTROLS).decode("utf-8", "replace") if is_literal else written)

    def _decoded_pieces(self) -> Iterator[str]:
        for piece in self._pieces:
            yield piece if isinstance(piece, str) else self._resolve_references(piece)

    def _resolve_references(self, piece: bytes) -> str:
        text = piece.translate(None, _CONTROLS).decode("utf-8", "replace")
        if "&" not in text:
            return text
        self._references_left -= text.count("&") - text.count("&amp;")
        return resolved(_find_entity(self._entity_text, text) if self._entities else text)

    def _entity_text(self, reference: re.Match[str]) -> str:
        return self._entities.get(reference[1], reference[0])

    def _declare_namespaces(self, depth: int, written: bytes) -> None:
        for prefix, space in _spaces_in(written)[:_PREFIXES_MAX]:
            if len(self._spaces) < _PREFIXES_MAX or prefix in self._spaces:
                self._scopes.append((depth, prefix, self._spaces.get(prefix)))
                self._spaces[prefix] = space.strip()


@cache
def _compile_expressions(shape: ListShape) -> tuple[Match, Match, Match]:
    """Return three expressions: for a value without inner tags, for an entry of such values, and for what to skip."""
    ours, kept, entries = (b"|".join(sorted(names)) for names in (shape.names, shape.values, shape.entries))
    attributes = rb"(?:\s(?![^<>]*xml)[^<>]*+)?+(?<!/)"
    plain = re.compile(rb"<((?:%b:)?+(?:%b))(%b>)([^<]*+)</\1>" % (_NAME, kept, attributes)).match
    record = re.compile(rb"<(%b)>((?:\s*+<(%b)>[^<]*+</\3>){1,16}+)\s*+</\1>" % (entries, kept)).match
    other = rb"(?:%b:)?+(?!(?:%b)[\s/>])%b" % (_NAME, ours, _NAME)
    rest = rb"(?=[\s/>])(?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+(?:(?<=/)>|>"
    leaf = rb"[^<]*+<((?:%b:)?+%b)%b[^<]*+</\2>)" % (_NAME, _NAME, rest)
    skip = re.compile(rb"(?:[^<]*+<(%b)%b(?:%b)*+[^<]*+</\1>))*+" % (other, rest, leaf)).match
    return plain, record, skip


def _decode_utf8(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _attributes(written: bytes) -> dict[str, str]:
    return attributes_of(written[:-1].removesuffix(b"/").decode("utf-8", "replace")) if len(written) > 2 else {}
