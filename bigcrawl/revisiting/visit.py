"""What is known of a page that is visited again. It travels with the page's URL, so it is wherever the URL is.

As bytes it is msgpack, a list of the fields of `Visit` after a format version. Everything that a server sent is bounded
when it is noted, and everything is checked when it is read.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import msgpack

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.revisiting.change_rate import Comparisons, History, with_comparison

if TYPE_CHECKING:
    from bigcrawl.revisiting.policies import RevisitPolicy

VALIDATOR_BYTES_MAX = 256
"""A longer ETag or Last-Modified is not kept; servers send some 40 bytes."""

DIGEST_BYTES = 12  # 10^8 pages of a crawl, each changed a thousand times: two alike by chance once in 10^17 pairs

_VERSION = 2
_WITHOUT_SOONEST = 1  # the version before; such a visit is not brought forward
_NOT_MODIFIED = 304
_OK = range(200, 300)
_GONE = frozenset({301, 308, 404, 410})
"""Statuses that say for good that the page is not there. After any other error it may be there as it was."""


class VisitFormatError(BigcrawlError):
    """The bytes are not what is known of a page, or are of another version."""


class Answer(NamedTuple):
    """What a visit brought.

    Attributes:
        status: of the response; 0 if there was none.
        digest: of the body, see `digest_of`.
        etag, modified: the values of ETag and Last-Modified; empty without.
        is_conditional: whether the request had conditions.
    """

    status: int = 0
    digest: bytes = b""
    etag: bytes = b""
    modified: bytes = b""
    is_conditional: bool = False


NO_ANSWER = Answer()


class Visit(NamedTuple):
    """What is known of a page after a visit.

    Attributes:
        number: how often the page was visited, whatever came of it; every visit has a higher one.
        first_s: when it was found, in seconds since 1970, like all times here.
        last_s: when a visit last brought its content, or confirmed it.
        changed_s: when its present content, or its absence, was first seen.
        due_s: when it is to be visited next.
        is_gone: whether the page no longer exists.
        digest: of its body, or of its last one if it is gone.
        etag: of that body; empty if it had none.
        modified: the Last-Modified of that body; empty if it had none.
        history: for the estimate of its rate of change.
        soonest_s: from when it may be visited if its site says that it has changed; 0: when it is due.
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

    def pack(self) -> bytes:
        """Return the visit as bytes: some 100, most of them validators."""
        packed: bytes = msgpack.packb((_VERSION, *self))
        return packed

    @classmethod
    def unpack(cls, data: bytes) -> Visit:
        """Return the visit in bytes that `pack` returned.

        Raises:
            VisitFormatError: the bytes are damaged, or of another version.
        """
        try:
            version, *fields = msgpack.unpackb(data, use_list=False)
            if version == _WITHOUT_SOONEST:
                fields.append(0)
            *others, rows, soonest_s = fields
            visit = cls._make((*others, tuple(Comparisons(*row) for row in rows), soonest_s))
            sound = version in (_VERSION, _WITHOUT_SOONEST) and all(map(isinstance, visit, _TYPES))
            sound = sound and all(type(number) is int and number >= 0 for row in visit.history for number in row)
        except Exception as error:
            raise VisitFormatError(f"a visit cannot be decoded: {error!r}") from error
        if not sound:
            raise VisitFormatError(f"a visit has version {version!r} or a field of a wrong type")
        return visit


_TYPES = (int, int, int, int, int, bool, bytes, bytes, bytes, tuple, int)


def digest_of(body: bytes) -> bytes:
    """Return the digest by which a page without validators is known to be unchanged. Cost: 1 us a KB."""
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
    """Return what is known after a visit, with the time of the next one; None if the page is not visited again.

    Args:
        before: what was known; None at the first visit, which must find a page.
        answer: what the visit brought.
        now_s: the time of the visit. It may lie before the last one if a clock was set.
        policy: decides about the wait.
        is_important: see `RevisitPolicy.wait_s`.
        hinted_s: likewise.
    """
    is_page = answer.status in _OK and bool(answer.digest)
    etag, modified = _kept(answer.etag), _kept(answer.modified)
    if before is None:
        if not is_page:
            return None
        wait_s = policy.wait_s((), 0, is_important=is_important, hinted_s=hinted_s)
        soonest_s = now_s + policy.soonest_s(wait_s, is_important=is_important)
        return Visit(1, now_s, now_s, now_s, now_s + wait_s, False, answer.digest, etag, modified, (), soonest_s)
    now_s = max(now_s, before.last_s + 1)
    since_s = now_s - before.last_s
    is_gone = answer.status in _GONE
    is_same = answer.status == _NOT_MODIFIED and answer.is_conditional and not before.is_gone
    if not (is_page or is_gone or is_same):  # nothing was learned
        due_s = now_s + policy.retry_s(before.due_s - before.last_s)
        return before._replace(number=before.number + 1, due_s=due_s, soonest_s=0)
    if is_page:
        changed = before.is_gone or answer.digest != before.digest
        digest = answer.digest
    else:
        changed = is_gone and not before.is_gone
        digest, etag, modified = before.digest, etag or before.etag, modified or before.modified
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
    )


def _kept(value: bytes) -> bytes:
    """A validator as it is sent back; nothing if it is too long, or not printable ASCII."""
    is_plain = len(value) <= VALIDATOR_BYTES_MAX and value.isascii() and value.decode("ascii", "replace").isprintable()
    return value if is_plain else b""
