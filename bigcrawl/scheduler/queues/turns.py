"""All waiting URLs except parked ones: the queues of each turn, the over-budget queue, and revisits (steps 5 and 6).

A turn has one queue for each level, `queue-<turn>-<level>`: levels 0 to 4 hold ordinary URLs, and each tier of extra
URLs has five further levels (`budgets.placement`). The queues of the current turn are the front queues. When they are
empty, the next turn with URLs becomes current; nothing is rewritten. Without budgets, everything stays in turn 0.

    from              to                when
    arriving          turn c .. c + j   placed: see `placement`
    arriving          over budget       beyond c + j, or behind such URLs of its PLD
    turn c + 1 ..     front queues      the front queues are empty and there is room
    over budget       turn, or          re-read: when c reaches `next_reread`, or when no turn has URLs; j doubles
                      over budget       before, up to `WINDOW_MAX`; or when the queue has trebled since c moved on

Turn c also takes arriving URLs, so that new URLs need not wait for the extra URLs of others. It is closed once enough
URLs have joined it, so that it ends however many PLDs are discovered. A re-read is spread over steps.

The queue has trebled when two URLs have arrived for each that failed the last re-read. Each arrival then pays for
reading half of a failed URL, and for reading itself. So a PLD that was over budget once does not wait for everything
that a link farm has in the turns, however long they have become. In this case j also grows, up to `WINDOW_GROWN`.

The quantum, which says how many budgets make a PLD's share in a turn, is set by re-reads. It rises if turns are too
small to be worth their files. It also rises if a re-read would read too many URLs that arrivals have not paid for,
compared with what turns hold; this happens when a few PLDs have nearly all URLs. It falls if turns are large and the
re-read was cheap, or if no PLD's share has reached the end of the window.
If scores have changed, URLs in turns are scored again: those of the current turn a portion in each step, by which each
front queue moves once from its head to the ends of the queues; those of a later turn when it begins. How far this has
come is in memory only: an owner that opens the partition begins again.
If a re-read placed nothing while no turn had URLs, it is not repeated until budgets change, URLs arrive, or c has moved
on to `next_reread`.
URLs that wait for the time of their next visit (`queues.revisits`) are not waiting URLs here until they are due. Then
they arrive like new ones.
Source: IRLbot §6.2 (BEAST). Differs: a sliding window rather than a ring of queues; re-reads in small portions, and
by size; the quantum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.scheduler.budgets.placement import OVER_BUDGET, Window
from bigcrawl.scheduler.queues.front_queues import LEVELS, FrontQueues, level_of
from bigcrawl.scheduler.queues.named_queues import Queues
from bigcrawl.scheduler.queues.over_budget import OverBudget
from bigcrawl.scheduler.queues.revisits import Revisits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory
    from bigcrawl.scheduler.queues.fifo import FifoState
    from bigcrawl.scheduler.queues.front_queues import Selector
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

WINDOW_MIN = 4
# Each turn costs some files. IRLbot has 16 queues at 8 billion pages, and 128 at 80 billion.
WINDOW_MAX = 128
# Limit for re-reads by size, because every turn has files.
WINDOW_GROWN = 32

# The current turn closes once this many ordinary URLs have joined it, and at least as many as it has extra ones.
TURN_CLOSES_AT = 4096
# The quantum steers turns towards sizes between these.
_TURN_SMALL = 256
_TURN_LARGE = 4096

# A re-read by size starts when the queue has trebled and at least this many more URLs have arrived.
_ARRIVED_PER_FAILED = 2
_REREAD_LEAST = 1024
# URLs re-read for each URL that passes; both lie below IRLbot's bound of 2 L - 1 = 12.
_REREAD_DEAR = 8
_REREAD_CHEAP = 4

_RESCORED_BYTES = 16 << 20

# With a budget of 10, a partition with a single PLD spreads 84 million of its URLs over 128 turns.
QUANTUM_MAX = 1 << 16

_QUEUE = "queue"


class TurnState(NamedTuple):
    """The state of the turns, as the manifest stores it.

    Attributes:
        turn: c, the current one.
        ordinary: ordinary URLs that it has had.
        joined: how many of them were placed in it while it was current.
        extra: extra URLs that it has had.
        window: j, how many turns after c take URLs.
        quantum: m, see `placement`.
        next_reread: the turn in which the over-budget queue is re-read.
        generation: the one that takes over-budget URLs.
        is_rereading: whether the one before it is being re-read.
        reread: URLs that this re-read, or the last one, has taken from the over-budget queue.
        passed: how many of them it has placed in turns.
        has_new_budgets: whether budgets have changed since this re-read began.
        is_resting: whether the last re-read placed nothing, so that another would be in vain.
        reread_ever: URLs taken from the over-budget queue in total.
        released_s: up to when revisits were released, in seconds since 1970.
    """

    turn: int = 0
    ordinary: int = 0
    joined: int = 0
    extra: int = 0
    window: int = WINDOW_MIN
    quantum: int = 1
    next_reread: int = WINDOW_MIN
    generation: int = 1
    is_rereading: bool = False
    reread: int = 0
    passed: int = 0
    has_new_budgets: bool = False
    is_resting: bool = False
    reread_ever: int = 0
    released_s: int = 0


FIRST_TURN = TurnState()


class Turns:
    """The front queues, the later turns, the over-budget queue, and what waits for its next visit."""

    def __init__(
        self, queues: Queues, state: TurnState, selector: Selector, later: dict[int, int], revisits: Revisits
    ) -> None:
        self._queues = queues
        self._state = state
        self._ordinary, self._joined, self._extra = state.ordinary, state.joined, state.extra
        # The number of URLs in each later turn that has any.
        self._later = later
        # How many URLs from the head of each front queue are to be scored again, and the later turns with such URLs.
        self._unscored: dict[int, int] = {}
        self._outdated: frozenset[int] = frozenset()
        self.rescored_ever = 0
        """How many URLs this owner has scored again."""
        self._later_waiting = sum(later.values())
        self.revisits = revisits
        self.over = OverBudget(queues, state.generation, is_rereading=state.is_rereading)
        self.front = FrontQueues(queues, _prefix(state.turn), selector)

    @classmethod
    def restore(
        cls, epoch: EpochDirectory, states: Mapping[str, FifoState], state: TurnState, selector: Selector
    ) -> Turns:
        """Return the queues that a manifest describes. Their segments are sealed."""
        later: dict[int, int] = {}
        for name, queue in states.items():
            kind, _, rest = name.partition("-")
            if kind == _QUEUE and (turn := int(rest.partition("-")[0])) > state.turn:
                later[turn] = later.get(turn, 0) + queue.waiting
        queues = Queues.restore(epoch, states)
        return cls(queues, state, selector, later, Revisits.restore(queues, state.released_s))

    def __len__(self) -> int:
        return self.front.waiting + self._later_waiting + len(self.over)

    def __repr__(self) -> str:
        return f"<Turns turn={self._state.turn} front={self.front.waiting} later={self._later_waiting} {self.over!r}>"

    @property
    def state(self) -> TurnState:
        """The state of the turns."""
        return self._state._replace(
            ordinary=self._ordinary,
            joined=self._joined,
            extra=self._extra,
            generation=self.over.generation,
            is_rereading=self.over.is_rereading,
            released_s=self.revisits.released_s,
        )

    @property
    def by_turn(self) -> dict[int, int]:
        """URLs in the current turn and in each later one that has any."""
        return {self._state.turn: self.front.waiting, **dict(sorted(self._later.items()))}

    @property
    def is_plain(self) -> bool:
        """Whether all waiting URLs are ordinary and in the front queues, as in a crawl without budgets."""
        if self._later or len(self.over):
            return False
        return not any(queue.waiting for level, queue in self.front.queues.items() if level >= LEVELS)

    @property
    def window(self) -> Window:
        """Where URLs may be placed now."""
        state = self._state
        is_closed = self._joined >= max(TURN_CLOSES_AT, self._extra)
        over = self.over
        return Window(
            state.turn + is_closed, state.turn + state.window, over.generation, over.is_rereading, state.quantum
        )

    def fork(self) -> Turns:
        """Return a copy to change. This one stays as it is."""
        queues = self._queues.fork()
        other = Turns(queues, self.state, self.front.selector.fork(), self._later.copy(), self.revisits.fork(queues))
        other._unscored, other._outdated = self._unscored.copy(), self._outdated
        other.rescored_ever = self.rescored_ever
        return other

    def flush(self) -> None:
        """Write pending URLs to disk."""
        self._queues.flush()

    def queue_states(self) -> Mapping[str, FifoState]:
        """Return the states of the queues for the manifest. All must be flushed."""
        return self._queues.states()

    # Placing.

    def append(self, urls: Sequence[QueuedUrl]) -> None:
        """Add URLs at the end of the current turn, whatever share their PLD has had."""
        self.front.extend(urls)
        self._ordinary += len(urls)
        self._joined += len(urls)

    def put(self, urls: Iterable[QueuedUrl], turns: Sequence[int], tiers: Sequence[int], *, reread: bool) -> None:
        """Put URLs where they were placed: into turns, in the order given, or into the over-budget queue.

        Args:
            urls: in order of arrival.
            turns: the turn of each URL, not before the current one, or `OVER_BUDGET`.
            tiers: the tier of each URL in its turn.
            reread: whether they come from the over-budget queue.
        """
        current, queues, later = self._state.turn, self._queues, self._later
        over = ordinary_here = extra_here = 0
        for url, turn, tier in zip(urls, turns, tiers, strict=True):
            if turn == OVER_BUDGET:
                self.over.append(url, failed=reread)
                over += 1
                continue
            level = level_of(url.priority) + LEVELS * tier
            if turn == current:
                self.front.append_at(level, url)
                extra_here += tier > 0
                ordinary_here += not tier
            else:
                queues[f"{_QUEUE}-{turn}-{level}"].append(url)
                later[turn] = later.get(turn, 0) + 1
                self._later_waiting += 1
        self._ordinary += ordinary_here
        self._joined += ordinary_here
        self._extra += extra_here
        if reread:
            state = self._state
            self._state = state._replace(
                reread=state.reread + len(turns),
                passed=state.passed + len(turns) - over,
                reread_ever=state.reread_ever + len(turns),
            )

    def withhold(self, urls: Sequence[QueuedUrl], *, reread: bool) -> None:
        """Add URLs at the end of the over-budget queue, whatever share their PLD has had; `reread` as for `put`."""
        self.put(urls, [OVER_BUDGET] * len(urls), [0] * len(urls), reread=reread)

    def advance(self) -> bool:
        """If the front queues are empty, make the next turn with URLs current. Return whether they have URLs now."""
        if self.front.waiting:
            return True
        if not self._later:
            return False
        turn = min(self._later)
        self._later_waiting -= self._later.pop(turn)
        self.front.remove()
        self.front = FrontQueues(self._queues, _prefix(turn), self.front.selector)
        self._state = self._state._replace(turn=turn)
        self._ordinary, self._joined = sum(self.front.counts()[:LEVELS]), 0
        self._extra = self.front.waiting - self._ordinary
        self._unscored = self._waiting_by_level() if turn in self._outdated else {}
        return True

    # Scoring again.

    @property
    def is_rescoring(self) -> bool:
        """Whether URLs of the current turn are still to be scored again."""
        return bool(self._unscored)

    def begin_rescore(self) -> None:
        """Scores have changed: have all URLs that wait in turns scored again."""
        self._unscored = self._waiting_by_level()
        self._outdated = frozenset(self._later)

    def next_to_rescore(self, limit: int) -> list[tuple[int, QueuedUrl]]:
        """Remove and return up to `limit` URLs of the current turn, each with its tier. All must be put back.

        They are fewer if their bodies are large, so that memory holds no more than 16 MB and one body.
        """
        found: list[tuple[int, QueuedUrl]] = []
        bytes_left = _RESCORED_BYTES
        for level in sorted(self._unscored, reverse=True):
            queue = self.front.queues[level]
            left = min(self._unscored.pop(level), queue.waiting)
            while left and len(found) < limit and bytes_left > 0:
                found.append((level // LEVELS, queue.pop()))
                bytes_left -= len(found[-1][1].body)
                left -= 1
            if left:
                self._unscored[level] = left
                break
        self.rescored_ever += len(found)
        return found

    def put_back(self, tiers: Iterable[int], urls: Iterable[QueuedUrl]) -> None:
        """Put URLs that were scored again at the ends of their levels."""
        for tier, url in zip(tiers, urls, strict=True):
            self.front.append_at(level_of(url.priority) + LEVELS * tier, url)

    def _waiting_by_level(self) -> dict[int, int]:
        return {level: queue.waiting for level, queue in self.front.queues.items() if queue.waiting}

    # Re-reading.

    def wake(self) -> None:
        """Allow a re-read as soon as nothing else waits, because budgets have changed."""
        self._state = self._state._replace(is_resting=False, has_new_budgets=self.over.is_rereading)

    def wants_reread(self, *, starved: bool) -> bool:
        """Whether the over-budget queue is being re-read, or should be now.

        Args:
            starved: whether no turn has URLs although there is room for some.
        """
        if self.over.is_rereading:
            return True
        state, over = self._state, self.over
        if state.turn >= state.next_reread or (starved and not state.is_resting):
            return len(over) > 0
        has_moved = state.turn > state.next_reread - state.window  # if not, the last re-read would just be repeated
        return has_moved and over.arrived >= _ARRIVED_PER_FAILED * over.failed + _REREAD_LEAST

    def begin_reread(self) -> None:
        """Begin a re-read. The window doubles, and the quantum rises if turns hold too little for what a re-read costs.

        If no turn has URLs, the whole queue counts as that cost: a large backlog of a few PLDs that arrived at once
        would otherwise stall the crawl while all of it is read for a few URLs. If not, only the part counts for which
        recent arrivals have not paid.
        """
        state, over = self._state, self.over
        is_empty = not (self.front.waiting or self._later)
        is_due = is_empty or state.turn >= state.next_reread
        window = min(2 * state.window, WINDOW_MAX if is_due else max(state.window, WINDOW_GROWN))
        turn_size = max(self._ordinary + self._extra, state.passed // state.window, 1)
        unpaid = len(over) if is_empty else max(over.failed - over.arrived // _ARRIVED_PER_FAILED, 0)
        missing = unpaid // (_REREAD_DEAR * window * turn_size)
        self._state = state._replace(
            quantum=min(state.quantum << missing.bit_length(), QUANTUM_MAX),
            window=window,
            next_reread=state.turn + window,
            reread=0,
            passed=0,
            has_new_budgets=False,
            is_resting=False,
        )
        self.over.begin_reread()

    def next_over_budget(self, limit: int) -> list[QueuedUrl]:
        """Remove and return over-budget URLs to re-read: whole blocks until `limit` is reached. Empty at the end."""
        urls: list[QueuedUrl] = []
        while len(urls) < limit:
            block = self.over.pop_block()
            if not block:
                break
            urls += block
        return urls

    def end_reread(self) -> None:
        """Finish a re-read: adjust the quantum, and rest if it was in vain."""
        state = self._state
        quantum = state.quantum
        in_turns = self.front.waiting + self._later_waiting
        # A PLD with more than its share has URLs in the last turn of the window.
        is_needed = max(self._later, default=state.turn) >= state.next_reread
        if not is_needed:
            quantum //= 2
        elif state.passed and in_turns < _TURN_SMALL * state.window:
            quantum *= 2
        elif in_turns > _TURN_LARGE * state.window and state.reread <= _REREAD_CHEAP * state.passed:
            quantum //= 2
        is_vain = not (state.passed or in_turns or state.has_new_budgets)
        self._state = state._replace(quantum=min(max(quantum, 1), QUANTUM_MAX), is_resting=is_vain)

    def _check(self) -> None:
        self._queues._check()
        self.over._check()
        self.revisits._check()
        state = self.state
        later: dict[int, int] = {}
        for name in self._queues.names:
            kind, _, rest = name.partition("-")
            if kind == _QUEUE:
                turn = int(rest.partition("-")[0])
                assert turn >= state.turn, "no queue of a past turn is kept"
                later[turn] = later.get(turn, 0) + self._queues.waiting(name)
        assert later.pop(state.turn, 0) == self.front.waiting, "the front queues are those of the current turn"
        assert later == self._later, "every turn's URLs are counted"
        assert all(later.values()), "no later turn is empty"
        assert self._later_waiting == sum(later.values()), "the sum of later turns is kept"
        assert WINDOW_MIN <= state.window <= WINDOW_MAX, "the window is bounded"
        assert max(later, default=0) <= state.turn + WINDOW_MAX, "no URL lies behind the window"
        assert 1 <= state.quantum <= QUANTUM_MAX, "the quantum is bounded"
        assert state.ordinary + state.extra >= self.front.waiting, "a turn has had at least the URLs that wait in it"


def _prefix(turn: int) -> str:
    return f"{_QUEUE}-{turn}"
