"""The state of a page that is visited again: msgpack that travels with its URL, and is checked when it is read."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import msgpack

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.revisiting.change_rate import Comparisons, History, with_comparison

if TYPE_CHECKING:
    from bigcrawl.revisiting.policies import RevisitPolicy

VALIDATOR_BYTES_MAX = 256

DIGEST_BYTES = 12  # enough that two versions of a page do not share one by chance

NAME_CHARS_MAX = 80
"""Longer media types and charsets are not kept."""

_VERSION = 3
_ADDED_SINCE = {1: (0, 0, "", ""), 2: (0, "", ""), 3: ()}  # the last fields, which older versions lack
_NOT_MODIFIED = 304
_OK = range(200, 300)
_GONE = frozenset({301, 308, 404, 410})
"""Statuses of a page that is gone. After other errors it may exist unchanged."""


class VisitFormatError(BigcrawlError): ...


class Answer(NamedTuple):
    """The result of a visit; `status` is 0 without a response, and `digest` is that of the body."""

    status: int = 0
    digest: bytes = b""
    etag: bytes = b""
    modified: bytes = b""
    is_conditional: bool = False
    media_type: str = ""
    charset: str = ""


NO_ANSWER = Answer()


class Visit(NamedTuple):
    """The state of a page after a visit. Times are in seconds since 1970.

    Attributes:
        number: grows with every visit, whatever its result.
        last_s: when a visit last returned or confirmed its content.
        changed_s: when its present content, or its absence, was first seen.
        due_s: the latest time of the next visit.
        digest: digest of its last body; empty, like `etag` and `modified`, if there was none.
        soonest_s: the earliest time of the next visit if the site announces a change; 0 for `due_s`.
        status: that of the last visit; 0 without an answer.
        media_type, charset: those of its last body; empty if unknown.
    """

    number: int
    first_s: int
    last_s: int
    changed_s: int
    due_s: int
    is_gone: bool
    digest: bytes
    etag: bytes
    modified: bytes
    history: History = ()
    soonest_s: int = 0
    status: int = 0
    media_type: str = ""
    charset: str = ""

    def pack(self) -> bytes:
        packed: bytes = msgpack.packb((_VERSION, *self))
        return packed

    @classmethod
    def unpack(cls, data: bytes) -> Visit:
        try:
            version, *fields = msgpack.unpackb(data, use_list=False)
            visit = cls._make((*fields, *_ADDED_SINCE[version]))
            visit = visit._replace(history=tuple(Comparisons(*row) for row in visit.history))
            sound = all(map(isinstance, visit, _TYPES))
            sound = sound and all(type(number) is int and number >= 0 for row in visit.history for number in row)
        except Exception as error:
            raise VisitFormatError(f"a visit cannot be decoded: {error!r}") from error
        if not sound:
            raise VisitFormatError("a visit has a field of a wrong type")
        return visit


_TYPES = (int, int, int, int, int, bool, bytes, bytes, bytes, tuple, int, int, str, str)


def digest_of(body: bytes) -> bytes:
    return blake2b(body, digest_size=DIGEST_BYTES).digest()


def next_visit(
    before: Visit | None,
    answer: Answer,
    now_s: int,
    policy: RevisitPolicy,
    *,
    is_important: bool = False,
    hinted_s: float = 0.0,
) -> Visit | None:
    """Return the state after a visit, with the time of the next; None if the page is not visited again.

    The first visit, with `before` None, must find a page. `now_s` may lie before the last visit if a clock was set.
    """
    is_page = answer.status in _OK and bool(answer.digest)
    etag, modified = _storable_validator(answer.etag), _storable_validator(answer.modified)
    names = tuple(name if len(name) <= NAME_CHARS_MAX else "" for name in (answer.media_type, answer.charset))
    if before is None:
        if not is_page:
            return None
        wait_s = policy.wait_s((), 0, is_important=is_important, hinted_s=hinted_s)
        soonest_s = now_s + policy.soonest_s(wait_s, is_important=is_important)
        due_s, told = now_s + wait_s, (answer.digest, etag, modified)
        return Visit(1, now_s, now_s, now_s, due_s, False, *told, (), soonest_s, answer.status, *names)
    now_s = max(now_s, before.last_s + 1)
    since_s = now_s - before.last_s
    is_gone = answer.status in _GONE
    is_same = answer.status == _NOT_MODIFIED and answer.is_conditional and not before.is_gone
    if not (is_page or is_gone or is_same):
        due_s = now_s + policy.retry_s(before.due_s - before.last_s)
        return before._replace(number=before.number + 1, due_s=due_s, soonest_s=0, status=answer.status)
    if is_page:
        changed = before.is_gone or answer.digest != before.digest
        digest = answer.digest
    else:
        changed = is_gone and not before.is_gone
        digest, etag, modified = before.digest, etag or before.etag, modified or before.modified
        names = before.media_type, before.charset
    history = with_comparison(before.history, since_s, changed=changed)
    wait_s = policy.wait_s(history, since_s, is_important=is_important, hinted_s=hinted_s)
    return Visit(
        before.number + 1,
        before.first_s,
        now_s,
        now_s if changed else before.changed_s,
        now_s + wait_s,
        is_gone,
        digest,
        etag,
        modified,
        history,
        now_s + policy.soonest_s(wait_s, is_important=is_important),
        answer.status,
        *names,
    )


def _storable_validator(value: bytes) -> bytes:
    """Return a validator as it is sent back; empty if it is too long or not printable ASCII."""
    is_plain = len(value) <= VALIDATOR_BYTES_MAX and value.isascii() and value.decode("ascii", "replace").isprintable()
    return value if is_plain else b""
