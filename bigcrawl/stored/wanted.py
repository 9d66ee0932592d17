"""The requested pages, and the next one of them in the order of the crawl.

The state of each stored page takes four bytes:

| state | meaning | left by |
|---|---|---|
| 0 | not requested | `request_ranks` |
| n + 1 | requested, with template n | `pop_first`; another `request_ranks` changes only the default |
| 2^32 - 1 | given | - |

The next page is found by scanning the states from the last page given. Pages requested after their position has passed
wait in a heap, and so do further requests for the same page.

In the crawl, only the first request for a page was fetched. Pages that arrive together are parsed together, so any
request that comes within `TOGETHER` pages of the first one here may have been that one. All their templates are kept;
data stored with the page decides between them.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

_GIVEN: Final = (1 << 32) - 1
_FIRST_STRETCH: Final = 16  # states in the first scan: the next page is usually close
_STRETCH: Final = 4_096
TOGETHER: Final = 128
"""How many pages a crawl may parse at the same time: twice as many as it fetches by default."""
OTHERS_MAX: Final = 16


class RequestedPage(NamedTuple):
    """A requested page; `others` are templates of requests that may have come first in the crawl."""

    rank: int
    template: bytes
    others: tuple[bytes, ...] = ()


class RequestedPages:
    """The state of each of `count` stored pages; see the module."""

    def __init__(self, count: int) -> None:
        self._states = np.zeros(count, np.uint32)
        self._templates = RequestTemplates()
        self._default = 0
        self._at = 0  # requested pages before this rank are in `_late`
        self._late: list[int] = []
        self._more: list[tuple[int, int, bytes]] = []
        self._asked = 0
        self._waiting = 0
        self._given = 0
        self._asked_now: set[int] = set()
        self._young: set[int] = set()
        self._ages: deque[tuple[int, int]] = deque()
        self._others: dict[int, list[bytes]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting or self._more)

    def request_all(self, pages: npt.NDArray[np.bool_], template: bytes) -> None:
        """Request all of these pages, by rank. A later `request_ranks` replaces this template."""
        count = int(np.count_nonzero(pages))
        if count:
            self._default = self._templates.number_of(template, count) + 1
            self._states[pages] = self._default
            self._waiting += count

    def request_ranks(self, ranks: Sequence[int], template: bytes) -> int:
        states = self._states[np.asarray(ranks, np.int64)].tolist()  # one by one would cost three times as much
        asked = 0
        for rank, state in zip(ranks, states, strict=True):
            if state and state != self._default:
                if rank in self._young:
                    self._record_other(rank, state, template)
            elif rank not in self._asked_now:
                self._request_rank(rank, state, template)
                asked += 1
        self._asked_now.clear()
        return asked

    def request_again(self, rank: int, template: bytes) -> None:
        """Request a page even if it was requested before; it is given once per call, in the order of calls."""
        self._asked += 1
        heapq.heappush(self._more, (rank, self._asked, template))

    def pop_first(self) -> RequestedPage | None:
        """Return the first requested page, or None. Cost: 1 ns per page skipped."""
        first = self._find_first() if self._waiting else None
        if self._more and (first is None or self._more[0][0] < first):
            rank, _, template = heapq.heappop(self._more)
            return RequestedPage(rank, template)
        if first is None:
            return None
        if self._late and first == self._late[0]:
            heapq.heappop(self._late)
        template = self._templates.use_once(int(self._states[first]) - 1)
        self._states[first] = _GIVEN
        self._waiting -= 1
        self._record_handed_out(first)
        return RequestedPage(first, template, tuple(self._others.pop(first, ())))

    def _request_rank(self, rank: int, state: int, template: bytes) -> None:
        if state:
            self._templates.use_once(state - 1)
        else:
            self._waiting += 1
            if rank < self._at:
                heapq.heappush(self._late, rank)
        self._states[rank] = self._templates.number_of(template) + 1
        self._asked_now.add(rank)
        self._young.add(rank)
        self._ages.append((self._given, rank))

    def _record_other(self, rank: int, state: int, template: bytes) -> None:
        if self._templates.text_of(state - 1) == template:
            return
        others = self._others.setdefault(rank, [])
        if len(others) < OTHERS_MAX and template not in others:
            others.append(template)

    def _record_handed_out(self, rank: int) -> None:
        self._given += 1
        self._young.discard(rank)
        while self._ages and self._ages[0][0] < self._given - TOGETHER:
            self._young.discard(self._ages.popleft()[1])

    def _find_first(self) -> int:
        if self._late:
            return self._late[0]
        stretch = _FIRST_STRETCH
        while True:
            states = self._states[self._at : self._at + stretch]
            asked = states - np.uint32(1) < _GIVEN - 1  # 0 becomes the largest number
            ahead = int(asked.argmax())
            if asked[ahead]:
                self._at += ahead
                return self._at
            self._at += len(states)
            stretch = _STRETCH


class RequestTemplates:
    """Numbers templates (requests without URL), few in a crawl, and keeps each while its number is in use."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._texts: list[bytes] = []
        self._uses: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def number_of(self, text: bytes, uses: int = 1) -> int:
        number = self._numbers.get(text)
        if number is None:
            if self._free:
                number = self._free.pop()
                self._texts[number] = text
            else:
                number = len(self._texts)
                self._texts.append(text)
                self._uses.append(0)
            self._numbers[text] = number
        self._uses[number] += uses
        return number

    def text_of(self, number: int) -> bytes:
        return self._texts[number]

    def use_once(self, number: int) -> bytes:
        """Use a template once and return it; the last use deletes it."""
        text = self._texts[number]
        self._uses[number] -= 1
        if not self._uses[number]:
            del self._numbers[text]
            self._texts[number] = b""
            self._free.append(number)
        return text
