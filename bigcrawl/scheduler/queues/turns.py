"""All waiting URLs but the parked ones: the queues of each turn, and those over budget (steps 5 and 6).

A turn has a queue for each level, `queue-<turn>-<level>`, ordinary URLs in levels 0 to 4, extra ones five higher for
each tier (`budgets.placement`). Those of the current turn are the front queues: when they are empty the next
turn that has any becomes the current one, and nothing is rewritten. Without budgets all is in turn 0 for ever.

    from              to                when
    arriving          turn c .. c + j   placed: see `placement`
    arriving          over budget       beyond c + j, or behind such URLs of its PLD
    turn c + 1 ..     front queues      the front queues are empty and there is room
    over budget       turn, or          re-read: when c reaches `next_reread`, or when no turn has URLs; j doubles
                      over budget       before, up to `WINDOW_MAX`; or when the queue has trebled since c moved on

Turn c takes arriving URLs too, so that nobody new waits for the extra ones of others, until so many have joined it;
then it is closed, so that it has an end however many PLDs are discovered. A re-read is spread over steps.

That the queue has trebled says that two have come for each that a re-read let fail: half a read of those, and one of
its own, is what each pays for. So a PLD that was over budget once does not wait for all that a farm has in the turns,
however long these have become. j grows with the queue then too, up to `WINDOW_GROWN`.

The quantum, how many budgets make a PLD's share in a turn, is set with a re-read: it rises when turns are too small
to be worth their files, or when too many URLs would be re-read for those that turns hold and arrivals have not paid for
them, as it happens when a few PLDs have nearly all there is; it falls when turns are large and a re-read was cheap, or
when nobody's share has reached the end of the window.
A re-read that nothing passed while no turn had URLs is not repeated before there are other budgets, more URLs, or c
has moved on to `next_reread`.
Source: IRLbot §6.2 (BEAST). Differs: a sliding window rather than a ring of queues; re-reads in small portions, and
by size; the quantum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.scheduler.budgets.placement import OVER_BUDGET, Window
from bigcrawl.scheduler.queues.front_queues import LEVELS, FrontQueues, level_of
from bigcrawl.scheduler.queues.named_queues import Queues
from bigcrawl.scheduler.queues.over_budget import OverBudget

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory
    from bigcrawl.scheduler.queues.fifo import FifoState
    from bigcrawl.scheduler.queues.front_queues import Selector
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

WINDOW_MIN = 4
# Some files a turn. IRLbot has 16 queues at 8 billion pages, and 128 at 80 billion.
WINDOW_MAX = 128
# Re-reads by size widen the window no further: every turn has files.
WINDOW_GROWN = 32

# When so many ordinary URLs have joined it, or as many as it has extra ones, the current turn takes no more.
TURN_CLOSES_AT = 4096
# The sizes that the quantum steers turns to.
_TURN_SMALL = 256
_TURN_LARGE = 4096

# The over-budget queue has trebled, and so many more have come: fewer are not worth a look.
_ARRIVED_PER_FAILED = 2
_REREAD_LEAST = 1024
# URLs re-read for each that passes: less than IRLbot's bound of 2 L - 1 is 12.
_REREAD_DEAR = 8
_REREAD_CHEAP = 4

# With a budget of 10, so many URLs of the only PLD of a partition share 128 turns: 84 million.
QUANTUM_MAX = 1 << 16

_QUEUE = "queue"


class TurnState(NamedTuple):
    """Where the turns stand, as the manifest holds it.

    Attributes:
        turn: the current one, c.
        ordinary: ordinary URLs that it has brought.
        joined: those of them that were placed in it since it is the current one.
        extra: extra URLs that it has brought.
        window: how many turns behind c take URLs, j.
        quantum: m, see `placement`.
        next_reread: the turn in which the over-budget queue is re-read.
        generation: the one that takes what is over budget.
        is_rereading: whether the one before it is being re-read.
        reread: URLs that this re-read, or the last one, has taken from the over-budget queue.
        passed: those of them that it has placed in turns.
        has_new_budgets: whether budgets have changed since this re-read began.
        is_resting: whether the last re-read passed none, so that another would be vain.
        reread_ever: URLs taken from the over-budget queue in all.
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


FIRST_TURN = TurnState()


class Turns:
    """The front queues, the turns behind them, and the over-budget queue."""

    def __init__(self, queues: Queues, state: TurnState, selector: Selector, later: dict[int, int]) -> None:
        self._queues = queues
        self._state = state
        self._ordinary, self._joined, self._extra = state.ordinary, state.joined, state.extra
        # URLs of each turn behind the current one that has any.
        self._later = later
        self._later_waiting = sum(later.values())
        self.over = OverBudget(queues, state.generation, is_rereading=state.is_rereading)
        self.front = FrontQueues(queues, _prefix(state.turn), selector)

    @classmethod
    def restore(
        cls, epoch: EpochDirectory, states: Mapping[str, FifoState], state: TurnState, selector: Selector
    ) -> Turns:
        """Return the queues a manifest describes; their segments are sealed."""
        later: dict[int, int] = {}
        for name, queue in states.items():
            kind, _, rest = name.partition("-")
            if kind == _QUEUE and (turn := int(rest.partition("-")[0])) > state.turn:
                later[turn] = later.get(turn, 0) + queue.waiting
        return cls(Queues.restore(epoch, states), state, selector, later)

    def __len__(self) -> int:
        return self.front.waiting + self._later_waiting + len(self.over)

    def __repr__(self) -> str:
        return f"<Turns turn={self._state.turn} front={self.front.waiting} later={self._later_waiting} {self.over!r}>"

    @property
    def state(self) -> TurnState:
        """Where the turns stand."""
        return self._state._replace(
            ordinary=self._ordinary,
            joined=self._joined,
            extra=self._extra,
            generation=self.over.generation,
            is_rereading=self.over.is_rereading,
        )

    @property
    def by_turn(self) -> dict[int, int]:
        """URLs of the current turn and of each later one that has any."""
        return {self._state.turn: self.front.waiting, **dict(sorted(self._later.items()))}

    @property
    def is_plain(self) -> bool:
        """Whether all that waits is in the front queues and ordinary, as if there never had been a budget."""
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
        """Return a copy to work on; this one stays as it is."""
        return Turns(self._queues.fork(), self.state, self.front.selector.fork(), self._later.copy())

    def flush(self) -> None:
        """Write what is pending to disk."""
        self._queues.flush()

    def queue_states(self) -> Mapping[str, FifoState]:
        """Return what the manifest needs of the queues; everything is flushed."""
        return self._queues.states()

    # Placing.

    def append(self, urls: Sequence[QueuedUrl]) -> None:
        """Put URLs behind all others of the current turn, whatever their PLD has had."""
        self.front.extend(urls)
        self._ordinary += len(urls)
        self._joined += len(urls)

    def put(self, urls: Iterable[QueuedUrl], turns: Sequence[int], tiers: Sequence[int], *, reread: bool) -> None:
        """Put URLs where they were placed: each in its turn, in the order given, or over budget.

        Args:
            urls: in the order they arrived.
            turns: of each URL its turn, not before the current one, or `OVER_BUDGET`.
            tiers: of each URL its tier in its turn.
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
        """Put URLs behind what is over budget, whatever their PLD has had; `reread` as for `put`."""
        self.put(urls, [OVER_BUDGET] * len(urls), [0] * len(urls), reread=reread)

    def advance(self) -> bool:
        """Let the next turn with URLs be the current one; return whether the front queues have URLs."""
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
        return True

    # Re-reading.

    def wake(self) -> None:
        """Let the over-budget queue be re-read as soon as nothing else waits: budgets have changed."""
        self._state = self._state._replace(is_resting=False, has_new_budgets=self.over.is_rereading)

    def wants_reread(self, *, starved: bool) -> bool:
        """Whether the over-budget queue is being re-read, or is to be now.

        Args:
            starved: whether no turn has URLs, though there is room for some.
        """
        if self.over.is_rereading:
            return True
        state, over = self._state, self.over
        if state.turn >= state.next_reread or (starved and not state.is_resting):
            return len(over) > 0
        has_moved = state.turn > state.next_reread - state.window  # else all are where the last re-read left them
        return has_moved and over.arrived >= _ARRIVED_PER_FAILED * over.failed + _REREAD_LEAST

    def begin_reread(self) -> None:
        """Begin one; the window doubles, and the quantum rises if turns hold too little for what it costs.

        All that waits counts, when no turn has URLs: a large backlog that came at once, of few PLDs, would keep the
        crawl waiting while it is read whole for a handful of URLs. Else it is what more recent arrivals do not pay for.
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
        """Take URLs of the re-read that is going on, at least one block of them; none: it has come to its end."""
        urls: list[QueuedUrl] = []
        while len(urls) < limit:
            block = self.over.pop_block()
            if not block:
                break
            urls += block
        return urls

    def end_reread(self) -> None:
        """Draw the conclusions from a re-read that has come to its end."""
        state = self._state
        quantum = state.quantum
        in_turns = self.front.waiting + self._later_waiting
        # Who had more than its share has URLs in the last turn that there was.
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
        state = self.state
        later: dict[int, int] = {}
        for name in self._queues.names:
            kind, _, rest = name.partition("-")
            if kind == _QUEUE:
                turn = int(rest.partition("-")[0])
                assert turn >= state.turn, "no queue of a turn that is past is kept"
                later[turn] = later.get(turn, 0) + self._queues.waiting(name)
        assert later.pop(state.turn, 0) == self.front.waiting, "the front queues are those of the current turn"
        assert later == self._later, "every turn's URLs are counted"
        assert all(later.values()), "no later turn is empty"
        assert self._later_waiting == sum(later.values()), "and their sum"
        assert WINDOW_MIN <= state.window <= WINDOW_MAX, "the window is bounded"
        assert max(later, default=0) <= state.turn + WINDOW_MAX, "no URL lies behind the window"
        assert 1 <= state.quantum <= QUANTUM_MAX, "the quantum is bounded"
        assert state.ordinary + state.extra >= self.front.waiting, "a turn has brought at least what waits in it"


def _prefix(turn: int) -> str:
    return f"{_QUEUE}-{turn}"
