"""Mirrors over nodes that are killed at random: they are noticed all the same, and nobody else is taken for one."""

from __future__ import annotations

import os
import random
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, second_process_of
from tests.support.crawling.verdicts import pause
from tests.support.mirrored_web import (
    MIRRORS,
    SETTINGS,
    mirrored_web,
    pages_asked_for,
    seeds,
    stop_when_mirrors_get_less,
    told_in,
)
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.fault, pytest.mark.timeout(1_800)]

KILLS = int(os.environ.get("BIGCRAWL_TEST_KILLS", "8"))
SEED = int(os.environ.get("BIGCRAWL_TEST_SEED", "1"))
PAGES_BETWEEN = 40


def test_mirrors_are_noticed_whatever_node_dies(tmp_path: Path) -> None:
    """kill -9, one node after the other, while samples are counted and compared; a kill may cost a verdict seconds."""
    moments = random.Random(SEED)
    with ExitStack() as stack:
        stack.enter_context(no_strays_below(tmp_path))
        web = stack.enter_context(mirrored_web())
        settings = {**SETTINGS, "BIGCRAWL_DNS_SERVERS": web.name_server, "BIGCRAWL_PARTITIONS": 2}
        first = stack.enter_context(Crawl(tmp_path / "crawl", seeds(web), settings))
        nodes = [first, stack.enter_context(second_process_of(first))]
        for node in nodes:
            node.start()
        for kill in range(1, KILLS + 1):
            wait_until(lambda: len(pages_asked_for(web)) >= kill * PAGES_BETWEEN, "it goes on", timeout_s=600)  # noqa: B023
            node = moments.choice(nodes)
            assert node.process is not None
            assert node.process.poll() is None, "the crawl ended before most kills"
            node.kill()
            pause(moments.uniform(0.0, 1.0))
            node.start()
        stop_when_mirrors_get_less(nodes, web)
        assert set(told_in(nodes)) <= set(MIRRORS)
        assert first.status()["mirrors"] == len(MIRRORS)
