"""Logs of crawls that keep every rule to the microsecond, drawn by hypothesis; and such logs with one fault.

The schedule is made the slow and obvious way: each request is put at the earliest moment that every request
before it allows. Times are microseconds until they are logged, so that rounding has something to round; a
request may arrive late, and a server may notice late that its client has left, both by the tolerance at most.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from bigcrawl_simweb.basics.exchange import Exchange
from bigcrawl_simweb.check.rules import CheckRules
from bigcrawl_simweb.model.expectations import Expected

HOSTS = tuple(f"{name}.{pld}" for pld in ("one.test", "two.test") for name in "ab")
MAX_AGES_MS = (3_000, 24 * 3_600_000)
PERIOD_MS = 1_000
EPOCH_MS = 1_700_000_000_000
_SERVERS = ("192.0.2.1", "192.0.2.2")


def pld_of(host: str) -> str:
    return host.partition(".")[2]


def allows(host: str, target: str) -> bool:
    return not target.startswith("/private/")


def is_endless(host: str, target: str) -> bool:
    return target.startswith("/calendar/")


def server_of(host: str) -> str:
    """Hosts of both PLDs share each server."""
    return _SERVERS[HOSTS.index(host) % 2]


@dataclass(frozen=True)
class Step:
    """What the crawler does next, and what becomes of it."""

    host: str
    outcome: str
    duration_us: int
    slack_us: int
    late_us: int


_SHORT_US = st.sampled_from((0, 1, 999, 1000)) | st.integers(0, 60_000)
_STEP = st.builds(
    Step,
    host=st.sampled_from(HOSTS),
    outcome=st.sampled_from(("good", "good", "failing", "told", "faulty", "left", "endless")),
    duration_us=_SHORT_US,
    slack_us=st.just(0) | st.just(0) | _SHORT_US | st.just(4_000_000),
    late_us=st.integers(0, 5_000),
)
# Drawn by length first: lists are short otherwise.
STEPS = st.integers(0, 40).flatmap(lambda length: st.lists(_STEP, min_size=length, max_size=length))
RULES = st.builds(
    CheckRules,
    host_connections=st.integers(1, 3),
    host_delay_ms=st.integers(0, 50),
    host_delays_ms=st.dictionaries(st.sampled_from(HOSTS), st.integers(0, 80)),
    pld_of=st.sampled_from((None, pld_of)),
    pld_connections=st.integers(1, 4),
    pld_delay_ms=st.integers(0, 30),
    server_delay_ms=st.integers(0, 20),
    tolerance_ms=st.sampled_from((0, 0, 1, 5)),
    retries=st.integers(0, 3),
    retry_after_max_ms=st.just(1000),
    allows=st.just(allows),
    robots_max_age_ms=st.sampled_from(MAX_AGES_MS),
    robots_period_ms=st.sampled_from((0, PERIOD_MS)),
    is_endless=st.just(is_endless),
    endless_max=st.integers(0, 3),
    expected=st.just({}),
)


@dataclass
class _Sent:
    """A request as its crawler knows it."""

    host: str
    sent_us: int
    ended_us: int
    wait_until_us: int


@dataclass
class Schedule:
    """A polite crawl: what it was held to, and the log that it left, in order of sending."""

    rules: CheckRules
    log: list[Exchange] = field(default_factory=list)
    expected: dict[str, int | Expected] = field(default_factory=dict)
    _sent: list[_Sent] = field(default_factory=list)
    _robots_us: dict[str, int] = field(default_factory=dict)
    _robots_failed_us: dict[str, int] = field(default_factory=dict)
    _to_retry: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    _endless: dict[str, int] = field(default_factory=dict)

    def follow(self, steps: list[Step]) -> None:
        """Do all steps, politely, and let the rules expect what was fetched."""
        for step in steps:
            self._do(step)
        self.rules = replace(self.rules, expected=self.expected)

    def _do(self, step: Step) -> None:
        sent_us = self._allowed_us(step.host, self._earliest_us(step.host) + step.slack_us)
        robots_us = self._robots_us.get(step.host)
        if robots_us is None or sent_us - robots_us > self.rules.robots_max_age_ms * 1000:
            self._fetch_robots(step, sent_us)
        elif step.outcome == "endless" and self._endless_left(step.host):
            self._endless[self._space(step.host)] = self._endless.get(self._space(step.host), 0) + 1
            self._log(step, self._allowed_us(step.host, max(sent_us, robots_us)), f"/calendar/{len(self.log)}", 200)
        else:
            self._fetch_page(step, max(sent_us, robots_us))

    def _fetch_robots(self, step: Step, sent_us: int) -> None:
        # One that failed is asked for again when its end is known, and in the log after it.
        failed_us = self._robots_failed_us.get(step.host, 0)
        sent_us = self._allowed_us(step.host, max(sent_us, failed_us + 1000 * (self.rules.tolerance_ms + 1)))
        status = {"failing": 503, "left": 499}.get(step.outcome, 404)
        fault = "cut" if step.outcome == "faulty" else ""
        ended_us = self._log(step, sent_us, "/robots.txt", status, fault)
        if step.host in self._robots_us or not (fault or status == 503):
            self._robots_us[step.host] = ended_us
        else:
            self._robots_failed_us[step.host] = ended_us

    def _fetch_page(self, step: Step, ready_us: int) -> None:
        """A new page, or the one that failed last, once that has ended."""
        target, retries, failed_us = self._to_retry.pop(step.host, (f"/{len(self.log)}", 0, 0))
        sent_us = self._allowed_us(step.host, max(ready_us, failed_us))
        status = {"failing": 500, "told": 503, "left": 499}.get(step.outcome, 200)
        ended_us = self._log(step, sent_us, target, status, "stalled" if step.outcome == "faulty" else "")
        self.expected[f"http://{step.host}{target}"] = Expected(frozenset({200, 499, 500, 503}))
        if step.outcome in ("failing", "told", "faulty") and retries < self.rules.retries:
            self._to_retry[step.host] = (target, retries + 1, ended_us)

    def _space(self, host: str) -> str:
        return host if self.rules.pld_of is None else self.rules.pld_of(host)

    def _endless_left(self, host: str) -> bool:
        assert self.rules.endless_max is not None
        return self._endless.get(self._space(host), 0) < self.rules.endless_max

    def _earliest_us(self, host: str) -> int:
        """When delays and connections of all before it allow the next request to the host."""
        rules = self.rules
        delay_ms = max(rules.host_delay_ms, rules.host_delays_ms.get(host, 0))
        times = [self._sent[-1].sent_us if self._sent else EPOCH_MS * 1000]
        times.append(_free_us([s for s in self._sent if s.host == host], rules.host_connections, delay_ms))
        if rules.pld_of is not None:
            siblings = [s for s in self._sent if pld_of(s.host) == pld_of(host)]
            times.append(_free_us(siblings, rules.pld_connections, rules.pld_delay_ms))
        neighbours = [s.sent_us for s in self._sent if server_of(s.host) == server_of(host)]
        times.append(max(neighbours, default=0) + rules.server_delay_ms * 1000)
        return max(times)

    def _allowed_us(self, host: str, sent_us: int) -> int:
        """The first moment from `sent_us` on in no time for which the host wants to be left alone."""
        told = sorted((s.ended_us, s.wait_until_us) for s in self._sent if s.host == host)
        for ended_us, until_us in told:
            if ended_us <= sent_us < until_us:
                return self._allowed_us(host, until_us)
        return sent_us

    def _log(self, step: Step, sent_us: int, target: str, status: int, fault: str = "") -> int:
        tolerance_us = self.rules.tolerance_ms * 1000
        arrived_us = sent_us + min(step.late_us, tolerance_us)
        ended_us = arrived_us + step.duration_us
        left = status == 499 or fault == "stalled"
        logged_end_us = ended_us + (tolerance_us if left else 0)
        wait_ms = 100 if status == 503 and step.outcome == "told" else 0
        exchange = Exchange(
            arrived_us // 1000,
            logged_end_us // 1000,
            step.host,
            target,
            status,
            server_of(step.host),
            fault,
            wait_ms,
        )
        self.log.append(exchange)
        self._sent.append(_Sent(step.host, sent_us, ended_us, ended_us + wait_ms * 1000))
        return ended_us


def _free_us(sent: list[_Sent], connections: int, delay_ms: int) -> int:
    """When a host or PLD may have its next request."""
    if not sent:
        return 0
    free_us = sorted(s.ended_us for s in sent)[-connections] if len(sent) >= connections else 0
    last_us = max(s.ended_us for s in sent) if connections == 1 else max(s.sent_us for s in sent)
    return max(free_us, last_us + delay_ms * 1000)


@st.composite
def schedules(draw: st.DrawFn, /, **needs: Any) -> Schedule:
    """A polite crawl under drawn rules, but for those that are given."""
    schedule = Schedule(replace(draw(RULES), **needs))
    schedule.follow(draw(STEPS))
    return schedule
