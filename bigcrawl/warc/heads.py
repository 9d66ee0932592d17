from __future__ import annotations

import re
from typing import Final

HEAD_END: Final = b"\r\n\r\n"
HEAD_BYTES_MAX: Final = 64 * 1024
NEXT_BYTES: Final = 16
_MARK: Final = b"WARC/"
_DIGITS_MAX: Final = 18
_STAMP_DIGITS: Final = 14
# Line ends other than CRLF, folded lines, blanks before the colon.
_find_odd = re.compile(rb"\n(?:[ \t]|(?<!\r\n)|[!-9;-~]+[ \t]+:)").search
_find_head_end = re.compile(rb"\r?\n\r?\n").search
_starts_url = re.compile(rb"[a-z]{2,8}://").match
_blank_before_colon = re.compile(rb"(?m)^([!-9;-~]+)[ \t]+:").sub
_fold = re.compile(rb"\r?\n[ \t]+").sub
parse_status = re.compile(rb"(HTTP/[0-9.]+|ICY)[ \t]+([0-9]{3})(?![0-9])", re.IGNORECASE).match
# Internet Archive, ARC File Format. Version 2 has five more fields before the length.
_parse_arc = re.compile(
    rb"([A-Za-z][A-Za-z0-9+.-]*:[^\r\n]*) (\S+) ([0-9]{14}) (\S*)(?: \S+ \S+ \S+ \S+ \S+)? ([0-9]{1,18})\r?\n"
).match
find_starts = re.compile(rb"(?:\A|(?<=\n))(?=WARC/[01]\.|[a-z][a-z0-9+.-]{1,15}:)").finditer
FEW_HEAD_BYTES: Final = 8_192


def record_head(data: bytes) -> tuple[dict[bytes, bytes], int] | None:
    """Return the fields of a record's head, names in lower case, and the offset of its block, or None."""
    if not data.startswith(_MARK):
        return _arc_head(data)
    head, block_at = http_head(data)
    return (head_fields(head), block_at) if block_at else None


def http_head(block: bytes) -> tuple[bytes, int]:
    """Return a head in normal form (RFC 9112, 2.2, 5.1, 5.2), and the offset of its body; 0 if the head has no end."""
    at = block.find(HEAD_END)
    if at >= 0 and _find_odd(block, 0, at) is None:
        return block[:at], at + len(HEAD_END)
    found = _find_head_end(block) if b"\n\n" in block or b"\n\r\n" in block else None
    if found is None:
        return block, 0
    lines = block[: found.start()].split(b"\n")
    head = _fold(b" ", b"\r\n".join(line.rstrip(b"\r") for line in lines))
    return _blank_before_colon(rb"\1:", head), found.end()


def head_fields(head: bytes) -> dict[bytes, bytes]:
    """Return a head's fields by lower-case name; of several, the first."""
    pairs = [line.partition(b":") for line in reversed(head.split(b"\r\n"))]
    return {name.lower(): value.strip() for name, colon, value in pairs if colon}


def length_of(fields: dict[bytes, bytes]) -> int | None:
    told = fields.get(b"content-length", b"")
    return int(told) if told.isdigit() and len(told) <= _DIGITS_MAX else None


def block_of(fields: dict[bytes, bytes], rest: bytes) -> bytes:
    told = length_of(fields)
    if told is not None and told <= len(rest):
        behind = rest[told:]
        if behind == b"\n\r\n":  # the length includes half of a line end
            return rest[: told - 1]
        if not behind.strip(b"\r\n") or is_next(behind[:NEXT_BYTES]):
            return rest[:told]
    return rest.removesuffix(HEAD_END)


def is_next(behind: bytes) -> bool:
    """Return whether another record follows; the first 16 bytes suffice."""
    rest = behind.lstrip(b"\r\n")
    return len(rest) < len(behind) and (rest.startswith(_MARK) or _starts_url(rest) is not None)


def is_http(fields: dict[bytes, bytes], block: bytes) -> bool:
    if fields.get(b"content-type", b"").lower().startswith(b"application/http"):
        return True
    is_answer = fields.get(b"warc-type") in (b"response", b"revisit")
    is_web = fields.get(b"warc-target-uri", b"").lstrip(b"<")[:4].lower() == b"http"
    return is_answer and is_web and parse_status(block) is not None


def _arc_head(data: bytes) -> tuple[dict[bytes, bytes], int] | None:
    found = _parse_arc(data, 0, FEW_HEAD_BYTES)
    if found is None:
        return None
    url, address, stamp, kind, length = found.groups()
    is_file = url.startswith(b"filedesc:")
    is_message = url[:4].lower() == b"http" and parse_status(data, found.end()) is not None
    date = stamp.ljust(_STAMP_DIGITS, b"0")
    fields = {
        b"warc-type": b"warcinfo" if is_file else b"response" if is_message else b"resource",
        b"warc-target-uri": url,
        b"warc-date": b"%b-%b-%bT%b:%b:%bZ" % (date[:4], *(date[at : at + 2] for at in range(4, 14, 2))),
        b"warc-ip-address": address,
        b"content-type": b"application/http; msgtype=response" if is_message else kind,
        b"content-length": length,
    }
    return fields, found.end()
