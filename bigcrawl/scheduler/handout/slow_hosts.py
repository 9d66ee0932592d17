"""The share of a node's fetches that slow hosts may have (step 11): however many of them there are, others go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.bounded import BoundedDict
from bigcrawl.scheduler.records.outcomes import ABORTED

if TYPE_CHECKING:
    from bigcrawl.scheduler.handout.concurrency import Crowd
    from bigcrawl.scheduler.records.held import HeldUrl

HOSTS_REMEMBERED: Final = 100_000  # some 10 MB
FETCHES_PART: Final = 4  # one in so many of a node's fetches at a time is for slow hosts
NEVER_MS: Final = 1 << 62


class SlowHosts:
    """Hosts whose last answer was slow, and how many of them are being fetched from.

    Attributes:
        hosts: those that are slow; empty most of the time, so that a page costs one look.
        after_ms: a download that takes longer is slow.
    """

    def __init__(self, after_ms: int, crowd: Crowd) -> None:
        """Call hosts slow `after_ms`; 0: never."""
        self._crowd = crowd
        self._fetching = 0
        self.after_ms = after_ms or NEVER_MS
        self.hosts: BoundedDict[str, None] = BoundedDict(HOSTS_REMEMBERED)

    def __repr__(self) -> str:
        return f"<SlowHosts {len(self.hosts)} fetching={self._fetching}>"

    def have_room_for(self, host: str) -> bool:
        """Whether a fetch from the host may start: it is not slow, or the share is not used up."""
        return host not in self.hosts or self._fetching < max(1, self._crowd.shared // FETCHES_PART)

    def note_start(self, held: HeldUrl) -> None:
        """A URL is fetched now; from a slow host it is one of the share."""
        if held.host in self.hosts:
            held.is_slow = True
            self._fetching += 1

    def leave(self, held: HeldUrl) -> None:
        """A URL is not fetched any more, and gives back its part of the share."""
        if held.is_slow:
            held.is_slow = False
            self._fetching -= 1

    def note_end(self, held: HeldUrl) -> None:
        """A fetch is over: its download tells whether the host is slow."""
        self.leave(held)
        if held.outcome == ABORTED:
            return
        if held.download_ms > self.after_ms:
            self.hosts.remember(held.host, None)
        else:
            self.hosts.pop(held.host, None)
