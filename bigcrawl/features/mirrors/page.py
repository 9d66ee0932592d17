"""Selects samples of each PLD's contents (see `verdicts`), and sends them as hints. Near copies share a gist."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from bigcrawl.bounded import BoundedDict
from bigcrawl.features.mirrors.rows import SAMPLED, pack_sampled
from bigcrawl.features.mirrors.settings import MirrorConfig
from bigcrawl.features.mirrors.verdicts import is_sample, sample_secret
from bigcrawl.scheduler.budgets.policy import NO_POLICY
from bigcrawl.scheduler.handout.observers import Observer
from bigcrawl.scheduler.records.observed import ObservedRows

if TYPE_CHECKING:
    from bigcrawl.scheduler.handout.observers import Gist, NodeSide, SeenPage

SAMPLES_MAX: Final = 1 << 16
"""How many samples to remember (about 10 MB), so that a content on many pages of a PLD counts once."""


def observer_of(side: NodeSide) -> ContentSamples | None:
    config = side.config
    return (
        ContentSamples(side)
        if config.feature_config(MirrorConfig).share and config.budget.policy != NO_POLICY
        else None
    )


class ContentSamples(Observer):
    def __init__(self, side: NodeSide) -> None:
        self._side = side
        self._sent: BoundedDict[tuple[int, int], None] = BoundedDict(SAMPLES_MAX)  # PLDs and contents
        self._incomplete: list[tuple[str, Gist]] = []  # hosts and gists

    @cached_property
    def _sample_secret(self) -> int:
        return sample_secret(self._side.key_of)

    def rows_of(self, page: SeenPage) -> tuple[ObservedRows, ...]:
        if page.gist is None:
            self._send_sample(page.held.host, page.content)
        else:
            self._incomplete.append((page.held.host, page.gist))
        return ()

    def complete(self) -> None:
        complete, self._incomplete = self._incomplete, []
        for host, gist in complete:
            self._send_sample(host, gist.key)

    def _send_sample(self, host: str, content: int) -> None:
        if is_sample(content, self._sample_secret):
            side = self._side
            sample = side.pld_key(side.pld_of(host)), content
            if sample not in self._sent:
                side.offer_hint(ObservedRows(sample[0] % side.partitions, pack_sampled(*sample), SAMPLED))
            self._sent.remember(sample, None)

    def send_again(self) -> None:
        self._sent.clear()
