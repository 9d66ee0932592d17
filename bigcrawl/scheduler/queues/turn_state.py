"""The state of the turns, and the over-budget queue: URLs for which no turn of the window had room (IRLbot's Q_F).

The queue has no levels. Re-reads divide it into generations. `failed-<generation>` holds URLs that were re-read and are
still over budget, `arrived-<generation>` holds URLs that arrived during or after that re-read. URLs that fail go to the
next generation, so a re-read takes each URL once.

The queue is re-read when turn c has reached `next_reread`, when no turn has URLs, or when two URLs have arrived for
each that failed the last re-read. In the last case each arrival pays for reading itself and half of a failed URL. So a
PLD that was over budget once need not wait for all URLs that a link farm has in the turns.

Re-reads adjust the quantum. It rises if turns are too small to be worth their files, or if few PLDs have nearly all
URLs, so that arrivals have not paid for the re-read. It falls if turns are large and the re-read was cheap, or if no
PLD's share has reached the end of the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.scheduler.queues.fifo import Queues
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

_PARTS = ("failed", "arrived")

WINDOW_MIN = 4
# Each turn costs some files. IRLbot has 16 queues at 8 billion pages, and 128 at 80 billion.
WINDOW_MAX = 128
WINDOW_GROWN = 32

# Bounds of the turn sizes that the quantum aims for.
_TURN_SMALL = 256
_TURN_LARGE = 4096

# A re-read by size needs this many arrivals.
_ARRIVED_PER_FAILED = 2
_REREAD_LEAST = 1024
# URLs re-read for each URL that passes; both lie below IRLbot's bound of 2 L - 1 = 12.
_REREAD_DEAR = 8
_REREAD_CHEAP = 4

# With a budget of 10, a partition with a single PLD spreads 84 million of its URLs over 128 turns.
QUANTUM_MAX = 1 << 16


class OverBudgetQueue:
    """The queues of generation n, which receives URLs, and of n - 1 while it is re-read.

    No other generation has URLs.
    """

    def __init__(self, queues: Queues, generation: int, *, is_rereading: bool) -> None:
        self._queues = queues
        self.generation = generation
        self.is_rereading = is_rereading
        self._waiting = sum(queues.waiting(name) for name in self._queue_names())

    def __len__(self) -> int:
        return self._waiting

    def __repr__(self) -> str:
        return f"<OverBudgetQueue urls={len(self)} generation={self.generation} rereading={self.is_rereading}>"

    @property
    def failed(self) -> int:
        return self._queues.waiting(f"failed-{self.generation}")

    @property
    def arrived(self) -> int:
        return self._queues.waiting(f"arrived-{self.generation}")

    def extend(self, urls: Sequence[QueuedUrl], *, failed: bool) -> None:
        if urls:
            self._queues[f"{'failed' if failed else 'arrived'}-{self.generation}"].extend(urls)
            self._waiting += len(urls)

    def begin_reread(self) -> None:
        assert not self.is_rereading, "a re-read ends before the next begins"
        self.generation += 1
        self.is_rereading = True

    def pop_block(self) -> Sequence[QueuedUrl]:
        for part in _PARTS:
            name = f"{part}-{self.generation - 1}"
            if self._queues.waiting(name):
                urls = self._queues[name].pop_block()
                self._waiting -= len(urls)
                return urls
            self._queues.remove(name)
        self.is_rereading = False
        return ()

    def next_urls(self, limit: int) -> list[QueuedUrl]:
        """Remove and return at least `limit` URLs to re-read, in whole blocks; fewer or none at the re-read's end."""
        urls: list[QueuedUrl] = []
        while len(urls) < limit:
            block = self.pop_block()
            if not block:
                break
            urls += block
        return urls

    def _queue_names(self) -> list[str]:
        oldest = self.generation - self.is_rereading
        return [f"{part}-{generation}" for generation in range(oldest, self.generation + 1) for part in _PARTS]

    def _check(self) -> None:
        names = [name for name in self._queues.names if name.partition("-")[0] in _PARTS]
        assert set(names) <= set(self._queue_names()), "URLs over budget are of this generation, or of the one re-read"
        assert self._waiting == sum(map(self._queues.waiting, names)), "every URL over budget is counted"


class TurnState(NamedTuple):
    """The state of the turns, as the manifest stores it.

    Attributes:
        turn: c, the current one.
        joined: ordinary URLs that were placed in it while it was current.
        window: j, how many turns after c take URLs.
        quantum: m, see `placement`.
        generation: the one that takes over-budget URLs.
        reread: URLs taken from the queue by the current or last re-read.
        passed: those of them that were placed in turns.
        is_resting: the last re-read placed nothing, so another waits for new budgets, URLs or `next_reread`.
        released_s: the time up to which timed URLs were released.
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

    def wants_reread(self, over: OverBudgetQueue, *, starved: bool) -> bool:
        """Whether to re-read the over-budget queue. `starved` means that no turn has URLs, although there is room."""
        if over.is_rereading:
            return True
        if self.turn >= self.next_reread or (starved and not self.is_resting):
            return len(over) > 0
        has_moved = self.turn > self.next_reread - self.window  # otherwise it would repeat the last re-read
        return has_moved and over.arrived >= _ARRIVED_PER_FAILED * over.failed + _REREAD_LEAST

    def beginning_reread(self, over: OverBudgetQueue, *, turn_urls: int, is_empty: bool) -> TurnState:
        """Return the state at the start of a re-read: a doubled window, and a larger quantum if turns hold too little.

        A re-read costs the URLs that arrivals have not paid for. If no turn has URLs, it costs the whole queue:
        otherwise a large backlog of a few PLDs would stall the crawl while all of it is read for a few URLs.
        """
        is_due = is_empty or self.turn >= self.next_reread
        window = min(2 * self.window, WINDOW_MAX if is_due else max(self.window, WINDOW_GROWN))
        turn_size = max(turn_urls, self.passed // self.window, 1)
        unpaid = len(over) if is_empty else max(over.failed - over.arrived // _ARRIVED_PER_FAILED, 0)
        missing = unpaid // (_REREAD_DEAR * window * turn_size)
        return self._replace(
            quantum=min(self.quantum << missing.bit_length(), QUANTUM_MAX),
            window=window,
            next_reread=self.turn + window,
            reread=0,
            passed=0,
            has_new_budgets=False,
            is_resting=False,
        )

    def counting_reread(self, urls: int, passed: int) -> TurnState:
        return self._replace(
            reread=self.reread + urls, passed=self.passed + passed, reread_ever=self.reread_ever + urls
        )

    def ending_reread(self, in_turns: int, last_turn: int) -> TurnState:
        quantum = self.quantum
        is_needed = last_turn >= self.next_reread  # a PLD with more than its share has URLs at the end of the window
        if not is_needed:
            quantum //= 2
        elif self.passed and in_turns < _TURN_SMALL * self.window:
            quantum *= 2
        elif in_turns > _TURN_LARGE * self.window and self.reread <= _REREAD_CHEAP * self.passed:
            quantum //= 2
        is_vain = not (self.passed or in_turns or self.has_new_budgets)
        return self._replace(quantum=min(max(quantum, 1), QUANTUM_MAX), is_resting=is_vain)


FIRST_TURN = TurnState()
