"""The Lua scripts as typed functions: each returns a `Call` that `client.RedisClient.run` executes.

One function per file in `lua/`, of the same name; arguments in the order of the script's header, which is
the contract. Nothing else calls the scripts. A test compares headers, calls and files. How a call gets to Redis is told
in script_texts.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from bigcrawl.exceptions import OwnershipLostError, RewoundError, StaleCallError
from bigcrawl.redisdb.keys import CLOCK, CRAWLS, CrawlKeys, PartitionKeys, host_prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

T = TypeVar("T")
Value = str | bytes | int | float


class Call(NamedTuple, Generic[T]):
    """One script call, ready to be sent: name, keys, arguments and how to read the reply.

    `in_doubt` is the partition of which its owner knows less than before when no reply comes: whether the call was
    carried out, is or will be. None for calls that leave no doubt.
    """

    name: str
    keys: tuple[str, ...]
    args: tuple[Value, ...]
    parse: Callable[[Any], T]
    in_doubt: int | None = None


class Company(NamedTuple):
    """Which other crawls live on a Redis.

    Attributes:
        has_others: there are some.
        all_hold: each of their nodes holds the hosts that it fetches.
        longest_ms: the longest delay of a host that any of them keeps by its settings.
    """

    has_others: bool
    all_hold: bool
    longest_ms: int


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks: checked by the scripts that change a partition.

    The node, its epoch, and the generation: a number of the node's own that rises with each claim and each comparison
    of what both sides hold, so that nothing it sent before can be carried out after.
    """

    node: str
    epoch: int
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Claim:
    """A won partition: its new epoch, the generation that the claim began, and what Redis knows of it."""

    epoch: int
    admitted: int
    inbox_id: str
    returned: int
    committed: bool
    generation: int = field(default=0, compare=False)
    deaths: Mapping[int, bytes] = field(default_factory=dict)  # of suspects, by sequence number


@dataclass(frozen=True, slots=True)
class Refusal:
    """A partition that is somebody else's for `left_ms` more; at 0 it goes to who tells what that had in process."""

    left_ms: int
    node: str
    token: str


class TakenUrl(NamedTuple):
    """A URL handed out: its host, when it may be fetched (server ms), and its member."""

    host: str
    due_ms: int
    member: bytes


class Exchanged(NamedTuple):
    """The reply of `exchange_urls`.

    Attributes:
        now_ms: server time.
        next_due_ms: when a host of the partition may next be taken, server time; -1 when none waits.
        ended: URLs that were still taken and ended.
        urls: what was taken.
    """

    now_ms: int
    next_due_ms: int
    ended: int
    urls: list[TakenUrl]


class Ended(NamedTuple):
    """How one taken URL ended; `member` "" acknowledges, "=" returns it as it was, else it is the next try.

    `health` is what it says of its host: "" nothing, "+" it answers, else a failure as `HostFailure.word` has it.
    Of its host's delay, `waited_ms` are over when this is told.
    """

    seq: int
    delay_ms: int
    member: bytes = b""
    counter: str = ""
    fetched_bytes: int = 0
    health: str = ""
    waited_ms: int = 0


ANSWERS = "+"
"""The `health` of an end: the host answers."""


def answers(order: int | None) -> str:
    """Return the `health` of an end whose host answers, with the next try's place in its queue; None: the old one."""
    return ANSWERS if order is None else f"{ANSWERS}{order}"


def elsewhere(order: int) -> str:
    """Return the `health` of an end that says nothing of the host, but the URL has another place in its queue now."""
    return f">{order}"


RETIRED_MS = 10**15
"""A host that is due so long after today, or later, is retired: it is never due."""


class Starts(NamedTuple):
    """Start times that were granted; microseconds of server time, `granted` of them from `first_us` on."""

    now_us: int
    first_us: int
    step_us: int
    granted: int


class Reconciled(NamedTuple):
    """The reply of `reconcile_partition`.

    Attributes:
        given_back: taken URLs that went back to their queues, for the owner did not hold them.
        taken_again: held URLs that Redis did not hold as taken.
        removed: ended URLs that were taken or queued.
        admitted: the last admit batch.
        ended: sequence numbers of the URLs whose end was told and carried out.
        queued: URLs in Redis that are not taken, by host; with the last portion only.
    """

    given_back: int
    taken_again: int
    removed: int
    admitted: int
    ended: list[int]
    queued: dict[str, int]


@dataclass(frozen=True, slots=True)
class PartitionView:
    """How a partition stands at `now_ms`, server time."""

    now_ms: int
    owned: bool
    node: str
    epoch: int
    lease_left_ms: int
    hosts_ready: int
    hosts_waiting: int
    hosts_busy: int
    next_due_ms: int
    taken: int
    inbox_id: str
    fields: dict[bytes, bytes]  # of its state, as they came: an owner looks every second, for a few of them
    hosts_snoozed: int = 0  # for a minute or more
    hosts_retired: int = 0

    @property
    def state(self) -> dict[str, str]:
        """All fields of the partition's state."""
        return {
            name.decode("utf-8", "replace"): value.decode("utf-8", "replace") for name, value in self.fields.items()
        }

    @property
    def folded(self) -> str:
        """The last inbox entry that a committed step has merged; "0-0" before the first."""
        return self.fields.get(b"folded", b"0-0").decode()

    def count(self, field: str) -> int:
        """A counter of the partition's state; 0 when it was never raised."""
        return int(self.fields.get(field.encode(), 0))


# Those classes' own constructors are Python; this one is not.
_new_tuple = tuple.__new__


_ANOTHER_OWNER, _STALE = -1, -3


def _owned(partition: PartitionKeys, parse: Callable[[Any], T]) -> Callable[[Any], T]:
    """Read a reply, unless it says that another node owns the partition, or that the call came too late."""

    def parse_owned(reply: Any) -> T:
        code = reply[0] if isinstance(reply, list) else reply
        if code in (_ANOTHER_OWNER, _STALE):
            _refuse(partition, code)
        return parse(reply)

    return parse_owned


def _refuse(partition: PartitionKeys, code: int) -> None:
    if code == _ANOTHER_OWNER:
        raise OwnershipLostError(f"partition {partition.partition} has another owner")
    raise StaleCallError(f"partition {partition.partition} was compared with Redis while it was being asked")


def append_batch(
    keys: PartitionKeys, node: str, session: int, number: int, batch: bytes, urls: int, edges: bytes = b""
) -> Call[str | None]:
    """Put a batch into the inbox: the entry's id, "" when it was here before, None when an earlier one is missing."""

    def parse(reply: bytes | int) -> str | None:
        if isinstance(reply, bytes):
            return reply.decode()
        return None if reply else ""

    return Call(
        "append_batch", (keys.inbox, keys.sender, keys.state), (node, session, number, batch, urls, edges), parse
    )


def claim_partition(
    keys: PartitionKeys,
    *,
    node: str,
    token: str,
    lease_ms: int,
    epoch_min: int,
    dead_token: str,
    deadline_ms: int,
    delay_ms: int,
    generation: int,
    now_ms: int = 0,
    told_of: str = "*",
    in_process: str = "*",
) -> Call[Claim | Refusal]:
    """Become the owner, or learn who is."""

    def parse(reply: list[Any]) -> Claim | Refusal:
        if reply[0] == 0:
            return Refusal(int(reply[1]), reply[2].decode(), reply[3].decode())
        deaths = dict(zip(map(int, reply[6][::2]), reply[6][1::2], strict=True))
        epoch, admitted, returned = int(reply[1]), int(reply[2]), int(reply[4])
        return Claim(epoch, admitted, reply[3].decode(), returned, bool(reply[5]), generation, deaths)

    return Call(
        "claim_partition",
        (keys.owner, keys.state, keys.ready, keys.busy, keys.taken, keys.back, keys.inbox, keys.host, keys.deaths),
        (
            *(now_ms, node, token, lease_ms, epoch_min, dead_token, deadline_ms, delay_ms, generation),
            *(told_of, in_process),
        ),
        parse,
    )


def try_suspect(keys: PartitionKeys, who: Identity, seq: int, *, alone: bool = True) -> Call[bool]:
    """Note that a suspect is tried alone, or is alone no more; False when it is not taken."""
    return Call(
        "try_suspect",
        (keys.owner, keys.taken, keys.deaths),
        (who.node, who.epoch, who.generation, seq, int(alone)),
        _owned(keys, bool),
        keys.partition,
    )


def bury_url(keys: PartitionKeys, who: Identity, key: int, letter: bytes, letters_max: int) -> Call[bool]:
    """Keep a dead letter; False when there are too many."""
    return Call(
        "bury_url",
        (keys.owner, keys.state, keys.dead),
        (who.node, who.epoch, who.generation, key, letter, letters_max),
        _owned(keys, bool),
        keys.partition,
    )


def unbury_urls(keys: PartitionKeys, url_keys: Sequence[int]) -> Call[int]:
    """Take dead letters away; how many there were."""
    return Call("unbury_urls", (keys.state, keys.dead), tuple(url_keys), int)


def release_partition(keys: PartitionKeys, who: Identity) -> Call[int]:
    """Give the partition up; 1 released, 0 not ours, -1 URLs are still taken, -3 it was compared meanwhile."""
    args = (who.node, who.epoch, who.generation)
    return Call("release_partition", (keys.owner, keys.taken), args, int, keys.partition)


def admit_urls(
    keys: PartitionKeys,
    who: Identity,
    number: int,
    packed_keys: bytes,
    connections: int,
    urls: Sequence[tuple[str, int, bytes]],
    now_ms: int = 0,
) -> Call[bool]:
    """Admit batch `number` of (host, order, member); False when it was admitted before."""
    flat = tuple(value for url in urls for value in url)

    def parse(reply: int) -> bool:
        if reply == -2:
            raise RewoundError(f"partition {keys.partition}: Redis lacks an admit batch before {number}")
        return bool(reply)

    return Call(
        "admit_urls",
        (keys.owner, keys.state, keys.ready, keys.busy, keys.back, keys.host, keys.batches),
        (now_ms, who.node, who.epoch, number, packed_keys, connections, *flat),
        _owned(keys, parse),
    )


def exchange_urls(
    keys: PartitionKeys,
    who: Identity,
    connections: int,
    urls_max: int,
    horizon_ms: int,
    delay_ms: int,
    ended: Sequence[Ended] = (),
    now_ms: int = 0,
    outcomes: bytes = b"",
) -> Call[Exchanged]:
    """End taken URLs, then take URLs of hosts due within the horizon, earliest due first.

    `outcomes` are those of the acknowledged ones, see `bigcrawl.scheduler.records.outcomes`.
    """
    args: list[Value] = [now_ms, who.node, who.epoch, who.generation, connections, urls_max, horizon_ms, delay_ms]
    args.append(outcomes)
    for end in ended:
        args += end

    def parse(reply: list[Any]) -> Exchanged:
        if reply[0] < 0:
            _refuse(keys, reply[0])
        rows = zip(map(bytes.decode, reply[3::3]), reply[4::3], reply[5::3], strict=True)
        urls = [_new_tuple(TakenUrl, row) for row in rows]
        return _new_tuple(Exchanged, (reply[0], reply[1], reply[2], urls))

    return Call("exchange_urls", keys.for_exchange, tuple(args), parse, keys.partition)


def drop_urls(
    keys: PartitionKeys, who: Identity, host: str, counter: str, urls: Sequence[tuple[bytes, bytes]]
) -> Call[int]:
    """End URLs that wait in a host's back queue; how many were there. `urls` are (member, outcome) of each."""
    flat = [value for row in urls for value in row]
    return Call(
        "drop_urls",
        (keys.owner, keys.state, keys.ready, keys.back, keys.inbox),
        (who.node, who.epoch, who.generation, host, counter, *flat),
        _owned(keys, int),
        keys.partition,
    )


def reconcile_partition(
    keys: PartitionKeys,
    who: Identity,
    portion: int,
    delay_ms: int,
    held: Sequence[tuple[int, str, int, bytes]],
    earlier: Sequence[tuple[int]],
    told: Sequence[tuple[int]],
    ended: Sequence[tuple[int, str, int]],
    places: Sequence[tuple[str, int]],
    rests: Mapping[str, int],
    *,
    is_last: bool = True,
    now_ms: int = 0,
) -> Call[Reconciled]:
    """Make what Redis holds as taken equal to what the owner holds, and refuse what it sent before.

    Args:
        keys: of the partition.
        who: the owner, in a generation that begins with this call.
        portion: counted from 1; all have the same generation.
        delay_ms: of every host, after a Redis that forgot; 0 when it did not.
        held: (seq, host, order, member) of URLs.
        earlier: (seq,) of those that were in earlier portions.
        told: (seq,) of those whose end was told, and whether it was carried out is not known.
        ended: (seq, host, order) of URLs that are acknowledged.
        places: (host, order) where a URL held or gone may stand in a back queue.
        rests: ms from now that hosts must rest.
        is_last: whether there are no more portions.
        now_ms: the time, for tests.
    """

    def parse(reply: list[Any]) -> Reconciled:
        given_back, taken_again, removed, admitted, carried_out, *queued = reply
        hosts = zip(map(bytes.decode, queued[::2]), queued[1::2], strict=True)
        return Reconciled(given_back, taken_again, removed, admitted, list(map(int, carried_out)), dict(hosts))

    counts = (len(held), len(earlier), len(told), len(ended), len(places))
    flat = [value for row in (*held, *earlier, *told, *ended, *places, *rests.items()) for value in row]
    return Call(
        "reconcile_partition",
        (keys.owner, keys.state, keys.ready, keys.busy, keys.taken, keys.back, keys.host),
        (now_ms, who.node, who.epoch, who.generation, portion, int(is_last), delay_ms, *counts, *flat),
        _owned(keys, parse),
        keys.partition,
    )


def look_partition(
    keys: PartitionKeys, who: Identity | None = None, lease_ms: int = 0, now_ms: int = 0
) -> Call[PartitionView]:
    """See how the partition stands; its owner renews its lease by looking."""

    def parse(reply: list[Any]) -> PartitionView:
        epoch, lease_left, ready, waiting, busy, next_due, taken = (int(value) for value in reply[3:10])
        return PartitionView(
            now_ms=int(reply[0]),
            owned=bool(reply[1]),
            node=reply[2].decode(),
            epoch=epoch,
            lease_left_ms=lease_left,
            hosts_ready=ready,
            hosts_waiting=waiting,
            hosts_busy=busy,
            next_due_ms=next_due,
            taken=taken,
            inbox_id=reply[10].decode(),
            fields=dict(zip(reply[11][::2], reply[11][1::2], strict=True)),
            hosts_snoozed=int(reply[12]),
            hosts_retired=int(reply[13]),
        )

    node, epoch = (who.node, who.epoch) if who else ("", 0)
    return Call(
        "look_partition",
        (keys.owner, keys.state, keys.ready, keys.busy, keys.taken, keys.inbox, keys.snoozed),
        (now_ms, node, epoch, lease_ms),
        parse,
    )


def park_urls(keys: PartitionKeys, who: Identity, host: str, batch: bytes, members: Sequence[bytes]) -> Call[str]:
    """Move URLs of a host from its back queue to the inbox, as a batch; the entry's id, "" when one of them is gone."""
    return Call(
        "park_urls",
        (keys.owner, keys.state, keys.ready, keys.back, keys.inbox),
        (who.node, who.epoch, who.generation, host, batch, *members),
        _owned(keys, lambda reply: reply[0].decode()),
        keys.partition,
    )


def retire_hosts(keys: PartitionKeys, who: Identity, failures_max: int, now_ms: int = 0) -> Call[int]:
    """Retire the snoozed hosts that have failed so often; how many there were."""
    return Call(
        "retire_hosts",
        (keys.owner, keys.state, keys.ready, keys.host, keys.snoozed),
        (now_ms, who.node, who.epoch, who.generation, failures_max),
        _owned(keys, int),
        keys.partition,
    )


def awaken_host(keys: PartitionKeys, host: str, now_ms: int = 0) -> Call[bool]:
    """Forget that a host has failed: it is due at once; False when it had not failed."""
    return Call("awaken_host", (keys.state, keys.ready, keys.host, keys.snoozed), (now_ms, host), bool)


def trim_partition(
    keys: PartitionKeys, who: Identity, inbox_id: str, batch_number: int, state: dict[str, Value]
) -> Call[int]:
    """Trim the inbox and the batch keys up to what is durable; publish the owner's counts."""
    flat = tuple(value for pair in state.items() for value in pair)
    return Call(
        "trim_partition",
        (keys.owner, keys.state, keys.inbox, keys.batches),
        (who.node, who.epoch, who.generation, inbox_id, batch_number, *flat),
        _owned(keys, int),
        keys.partition,
    )


def advance_inbox(keys: PartitionKeys, inbox_id: str) -> Call[bool]:
    """Raise the stream's last id to at least `inbox_id`."""
    return Call("advance_inbox", (keys.inbox,), (inbox_id,), bool)


def note_rewind(keys: PartitionKeys, who: Identity, readmitted: int, lost: bytes = b"") -> Call[bool]:
    """Count URLs that are offered again, and forget those whose packed keys are `lost`."""
    args = (who.node, who.epoch, who.generation, readmitted, lost)
    return Call("note_rewind", (keys.owner, keys.state, keys.inbox), args, _owned(keys, bool), keys.partition)


def pass_gates(
    prefix: str,
    gates: Sequence[tuple[str, int]],
    earliest_ms: int,
    node: str,
    *,
    late_ms: int,
    ahead_ms: int,
    missed_ms: int = 0,
    had_turn: bool = False,
    now_ms: int = 0,
) -> Call[tuple[int, bool]]:
    """Reserve a start at all of some gates, (name, gap ms) each, or a turn to ask again.

    Returns:
        When, in the time of the crawls, and whether it is a start.
    """
    flat = tuple(value for gate in gates for value in gate)
    return Call(
        "pass_gates",
        (prefix,),
        (now_ms, earliest_ms, node, late_ms, missed_ms, ahead_ms, int(had_turn), *flat),
        lambda reply: (int(reply[0]), bool(reply[1])),
    )


def grant_starts(
    keys: CrawlKeys,
    *,
    page_us: int,
    bytes_us: int,
    debt_us: int,
    wanted: int,
    share: int,
    given_back: int,
    horizon_ms: int,
    now_ms: int = 0,
) -> Call[Starts]:
    """Get start times of the crawl's speed; `page_us` and `bytes_us` are microseconds a start, 0 without a limit."""
    return Call(
        "grant_starts",
        (keys.speed,),
        (now_ms, page_us, bytes_us, debt_us, wanted, share, given_back, horizon_ms),
        lambda reply: Starts(*map(int, reply)),
    )


def set_aside_urls(
    keys: PartitionKeys, who: Identity, connections: int, urls: Sequence[tuple[int, bytes]], now_ms: int = 0
) -> Call[list[str]]:
    """Put taken URLs, (seq, batch of the one) each, back into the inbox; the entry of each, "" if it was not taken."""
    flat = tuple(value for url in urls for value in url)
    return Call(
        "set_aside_urls",
        (keys.owner, keys.state, keys.ready, keys.busy, keys.taken, keys.back, keys.host, keys.inbox),
        (now_ms, who.node, who.epoch, who.generation, connections, *flat),
        _owned(keys, lambda reply: [entry_id.decode() for entry_id in reply]),
        keys.partition,
    )


def put_robots(
    keys: PartitionKeys,
    host: str,
    field: str,
    rules: bytes,
    expiry_ms: int,
    records_max: int,
    now_ms: int = 0,
    *,
    stale_ms: int = 0,
    bytes_max: int = 1 << 40,
) -> Call[int]:
    """Keep robots rules for all nodes, and `stale_ms` beyond their expiry; the number of records evicted for it."""
    return Call(
        "put_robots",
        (keys.host, keys.records, keys.ready, keys.busy, keys.rules),
        (now_ms, host, field, rules, expiry_ms, stale_ms, records_max, bytes_max),
        int,
    )


def beat_node(
    keys: CrawlKeys, node: str, report: str, lease_ms: int, *, leave: bool = False, now_ms: int = 0
) -> Call[dict[str, str]]:
    """Say that the node lives; the reports of all that do."""

    def parse(reply: list[Any]) -> dict[str, str]:
        names = [value.decode() for value in reply[1:]]
        return dict(zip(names[::2], names[1::2], strict=True))

    return Call("beat_node", (keys.nodes, keys.beats), (now_ms, node, report, lease_ms, 0 if leave else 1), parse)


def claim_start(
    keys: CrawlKeys,
    node: str,
    start_digest: str,
    lease_ms: int,
    *,
    done: bool = False,
    undone: bool = False,
    now_ms: int = 0,
) -> Call[int]:
    """Claim or renew, finish, or give up the start requests: 1 this node's, 0 another's or nobody's, 2 done."""
    wish = 2 if done else 3 if undone else 1
    return Call("claim_start", (keys.crawl,), (now_ms, node, start_digest, lease_ms, wish), int)


def borrow_host(
    keys: PartitionKeys, host: str, ticket: str, ahead_ms: int, deadline_ms: int, now_ms: int = 0
) -> Call[tuple[bool, int]]:
    """Borrow a host for one fetch: (True, ms until its start), or (False, ms until asking again)."""
    return Call(
        "borrow_host",
        (keys.ready, keys.busy, keys.host),
        (now_ms, host, ticket, ahead_ms, deadline_ms),
        lambda reply: (bool(reply[0]), int(reply[1])),
    )


def return_host(keys: PartitionKeys, host: str, ticket: str, delay_ms: int, now_ms: int = 0) -> Call[bool]:
    """Give a borrowed host back; False when it is not lent for this ticket any more."""
    return Call("return_host", (keys.ready, keys.host), (now_ms, host, ticket, delay_ms), bool)


def tell_time(
    estimate_ms: int, step_ms: int, node: str, *, correct: bool = False, now_ms: int = 0
) -> Call[tuple[int, int]]:
    """Ask for the time of the crawls: it, and by how many ms the server's clock turned out to have been set."""

    def parse(reply: list[int]) -> tuple[int, int]:
        return int(reply[0]), int(reply[1])

    return Call("tell_time", (CLOCK,), (now_ms, estimate_ms, step_ms, node, int(correct)), parse)


def meet_crawls(
    node: str, crawl: str, lease_ms: int, delay_ms: int, *, holds: bool = True, leave: bool = False, now_ms: int = 0
) -> Call[Company]:
    """Say that a node of a crawl lives, or leaves; which company it has."""

    def parse(reply: list[int]) -> Company:
        return Company(bool(reply[0]), bool(reply[1]), int(reply[2]))

    args = (now_ms, node, crawl, lease_ms, int(holds), delay_ms, 0 if leave else 1)
    return Call("meet_crawls", (CRAWLS,), args, parse)


def hold_host(
    host: str,
    crawl: str,
    delay_ms: int,
    most_ms: int,
    ticket: int,
    *,
    is_under_way: bool = False,
    now_ms: int = 0,
) -> Call[int]:
    """Have a host to oneself among all crawls: 0, or for how many ms to wait before asking again."""
    args = (now_ms, host, crawl, delay_ms, most_ms, ticket, int(is_under_way))
    return Call("hold_host", (host_prefix(host),), args, int)


def leave_host(
    host: str, crawl: str, ticket: int, ended_ms: int, free_ms: int, kept_ms: int, now_ms: int = 0
) -> Call[bool]:
    """Leave a host to other crawls; False when it is not held with this ticket any more."""
    args = (now_ms, host, crawl, ticket, ended_ms, free_ms, kept_ms)
    return Call("leave_host", (host_prefix(host),), args, bool)
