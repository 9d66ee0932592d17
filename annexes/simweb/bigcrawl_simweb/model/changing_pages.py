"""Pages that change at known rates, with ETag and Last-Modified.

The version follows from the time alone: each period has one change at a random moment.
"""

from __future__ import annotations

from dataclasses import replace
from email.utils import formatdate, parsedate_to_datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from bigcrawl_simweb.basics.answer import Answer
from bigcrawl_simweb.basics.power_law import mix_bits

if TYPE_CHECKING:
    from collections.abc import Mapping

# From seconds, short enough for a test, to a month.
_PERIODS_S: Final = (5, 20, 60, 600, 3_600, 21_600, 86_400, 604_800, 2_592_000)
_OK: Final = 200


def period_ms_of(number: int) -> int:
    return _PERIODS_S[number % len(_PERIODS_S)] * 1000


def changed_ms_of(seed: int, host: int, number: int, at_ms: int) -> int:
    """Return when the version current at `at_ms` was made; a whole second, like HTTP dates."""
    period = period_ms_of(number)
    window = at_ms // period
    changed = _change_in(seed, host, number, window)
    return changed if changed <= at_ms else _change_in(seed, host, number, window - 1)


def _change_in(seed: int, host: int, number: int, window: int) -> int:
    period = period_ms_of(number)
    draw = mix_bits(seed ^ mix_bits(host ^ mix_bits(number ^ window << 20)))
    return (window * period + draw % period) // 1000 * 1000


def validators(changed_ms: int) -> tuple[tuple[str, str], ...]:
    return ("ETag", etag_of(changed_ms)), ("Last-Modified", formatdate(changed_ms // 1000, usegmt=True))


def etag_of(changed_ms: int) -> str:
    """Return the entity tag of a version; every other one is weak, which must not matter for a GET."""
    return f'W/"{changed_ms // 1000:x}"' if changed_ms // 1000 % 2 else f'"{changed_ms // 1000:x}"'


def with_etag(answer: Answer, conditions: Mapping[str, str]) -> Answer:
    """Add an ETag, a digest of the body, or answer 304 if that tag was sent."""
    if answer.status != _OK or not answer.body:
        return answer
    tag = f'"{blake2b(answer.body, digest_size=8).hexdigest()}"'
    headers = (*answer.headers, ("ETag", tag))
    if tag in conditions.get("If-None-Match", ""):
        return Answer(304, headers, delay_ms=answer.delay_ms)
    return replace(answer, headers=headers)


def is_unchanged(conditions: Mapping[str, str], changed_ms: int) -> bool:
    """Return whether to answer a conditional request with 304. If-None-Match takes precedence, RFC 9110 §13.2.2."""
    tags = conditions.get("If-None-Match")
    if tags is not None:
        known = {tag.strip().removeprefix("W/") for tag in tags.split(",")}
        return "*" in known or etag_of(changed_ms).removeprefix("W/") in known
    since = conditions.get("If-Modified-Since")
    if since is None:
        return False
    try:
        return changed_ms <= parsedate_to_datetime(since).timestamp() * 1000
    except (ValueError, TypeError, OverflowError):
        return False
