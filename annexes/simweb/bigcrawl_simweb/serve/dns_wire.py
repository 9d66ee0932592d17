"""The part of the DNS wire format (RFC 1035) that a server of addresses needs. No I/O."""

from __future__ import annotations

import re
import socket
import struct
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEADER: Final = struct.Struct(">6H")
_TYPE_AND_CLASS: Final = struct.Struct(">2H")
_RECORD_TAIL: Final = struct.Struct(">2HIH")  # type, class, TTL, length of the data; the owner comes before it

_REPLY, _AUTHORITATIVE, _RECURSION_WANTED, _RECURSION_HAD = 0x8000, 0x0400, 0x0100, 0x0080
_OPCODE: Final = 0x7800
_QUESTION_NAME: Final = 0xC000 | _HEADER.size  # a pointer to the question's name
_CLASS_IN: Final = 1
_TYPE_CNAME: Final = 5
_TYPE_SOA: Final = 6
_HOST_LABEL: Final = re.compile(rb"[a-z0-9_-]+")
_NAME_BYTES_MAX: Final = 255
_LABEL_BYTES_MAX: Final = 63

TYPE_A: Final = 1
TYPE_AAAA: Final = 28
TYPE_ANY: Final = 255
_TYPES: Final = {1: "A", 2: "NS", 5: "CNAME", 6: "SOA", 12: "PTR", 15: "MX", 16: "TXT", 28: "AAAA", 255: "ANY"}


class Rcode(IntEnum):
    NOERROR = 0
    FORMERR = 1
    SERVFAIL = 2
    NXDOMAIN = 3
    NOTIMP = 4
    REFUSED = 5


class BadQueryError(ValueError):
    def __init__(self, rcode: Rcode) -> None:
        super().__init__(rcode.name)
        self.rcode = rcode


class Query(NamedTuple):
    """A question about one name.

    Attributes:
        question: name, type and class as sent; the reply must keep the name's case.
        name: lower-case, without the final dot; bytes not allowed in host names are escaped.
    """

    number: int
    flags: int
    question: bytes
    name: str
    record_type: int


def is_query(message: bytes) -> bool:
    """Return whether to answer a message; replies and too short messages are ignored."""
    return len(message) >= _HEADER.size and not message[2] & (_REPLY >> 8)


def type_name(record_type: int) -> str:
    return _TYPES.get(record_type, f"TYPE{record_type}")


def parse_query(message: bytes) -> Query:
    """Parse a message that `is_query`; raise BadQueryError unless it asks about one name of the Internet class."""
    number, flags, questions, *_ = _HEADER.unpack_from(message)
    if flags & _OPCODE:
        raise BadQueryError(Rcode.NOTIMP)
    if questions != 1:
        raise BadQueryError(Rcode.FORMERR)
    labels = []
    at = _HEADER.size
    while size := _byte_at(message, at):
        label = message[at + 1 : at + 1 + size]
        at += 1 + size
        if size > _LABEL_BYTES_MAX or at - _HEADER.size >= _NAME_BYTES_MAX:
            raise BadQueryError(Rcode.FORMERR)
        labels.append(_decode_label(label))
    end = at + 1 + _TYPE_AND_CLASS.size
    if end > len(message):
        raise BadQueryError(Rcode.FORMERR)
    record_type, record_class = _TYPE_AND_CLASS.unpack_from(message, at + 1)
    if record_class != _CLASS_IN:
        raise BadQueryError(Rcode.REFUSED)
    return Query(number, flags, message[_HEADER.size : end], ".".join(labels), record_type)


def encode_addresses(
    query: Query, addresses: Sequence[str], ttl_s: int, alias: str = "", alias_ttl_s: int | None = None
) -> bytes:
    """Return a reply with A and AAAA records, after a CNAME if there is an `alias`; a denial without addresses."""
    if not addresses:
        return _denial_reply(query, Rcode.NOERROR, ttl_s)
    owner = struct.pack(">H", _QUESTION_NAME)
    records = []
    if alias:
        target = _encode_name(alias)
        records.append(owner + _RECORD_TAIL.pack(_TYPE_CNAME, _CLASS_IN, alias_ttl_s or ttl_s, len(target)) + target)
        owner = target
    for address in addresses:
        packed = socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
        records.append(owner + _RECORD_TAIL.pack(_type_of(address), _CLASS_IN, ttl_s, len(packed)) + packed)
    return (
        _encode_header(query.number, query.flags, Rcode.NOERROR, answers=len(records))
        + query.question
        + b"".join(records)
    )


def has_type(address: str, record_type: int) -> bool:
    return record_type in (_type_of(address), TYPE_ANY)


def _type_of(address: str) -> int:
    return TYPE_AAAA if ":" in address else TYPE_A


def _encode_name(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode("ascii") for label in name.split(".")) + b"\0"


def encode_no_name(query: Query, ttl_s: int) -> bytes:
    return _denial_reply(query, Rcode.NXDOMAIN, ttl_s)


def encode_failure(query: Query) -> bytes:
    return _encode_header(query.number, query.flags, Rcode.SERVFAIL) + query.question


def encode_refusal(message: bytes, rcode: Rcode) -> bytes:
    number, flags, *_ = _HEADER.unpack_from(message)
    return _HEADER.pack(number, _reply_flags(flags) | rcode, 0, 0, 0, 0)


def _denial_reply(query: Query, rcode: Rcode, ttl_s: int) -> bytes:
    """Return a denial with the root's SOA, which has the time for which it may be cached (RFC 2308)."""
    timers = struct.pack(">5I", 1, 3600, 600, 86_400, ttl_s)
    source = b"\x06simweb\x00" + b"\x0ahostmaster\x06simweb\x00" + timers
    soa = b"\x00" + _RECORD_TAIL.pack(_TYPE_SOA, _CLASS_IN, ttl_s, len(source)) + source
    return _encode_header(query.number, query.flags, rcode, authorities=1) + query.question + soa


def _encode_header(number: int, flags: int, rcode: Rcode, answers: int = 0, authorities: int = 0) -> bytes:
    return _HEADER.pack(number, _reply_flags(flags) | rcode, 1, answers, authorities, 0)


def _reply_flags(asked: int) -> int:
    return _REPLY | _AUTHORITATIVE | _RECURSION_HAD | asked & (_OPCODE | _RECURSION_WANTED)


def _byte_at(message: bytes, at: int) -> int:
    if at >= len(message):
        raise BadQueryError(Rcode.FORMERR)
    return message[at]


def _decode_label(label: bytes) -> str:
    label = label.lower()
    if _HOST_LABEL.fullmatch(label):
        return label.decode()
    return "".join([chr(byte) if _HOST_LABEL.fullmatch(bytes((byte,))) else f"\\{byte:03}" for byte in label])
