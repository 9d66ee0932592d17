"""Crawls in cycles: which visits belong to one, how its end is announced, and that no death loses an end."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.support.crawling.crawls import Crawl, SimulatedWeb

SETTINGS = {"BIGCRAWL_HOST_DELAY": 0, "BIGCRAWL_PARTITIONS": 4, "BIGCRAWL_HOST_CONNECTIONS": 4}
VISITS = 2


def events_in(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


class Hearing:
    """An extension that writes the events of the signal into the file that HEARD names."""

    def __init__(self, file: str) -> None:
        self._file = Path(file)

    @classmethod
    def from_crawler(cls, crawler: Any) -> Hearing:
        from bigcrawl.scheduler.signals import cycle_ended

        hearing = cls(crawler.settings["HEARD"])
        crawler.signals.connect(hearing.hear, cycle_ended)
        crawler.hearing = hearing  # signals hold their handlers weakly
        return hearing

    def hear(self, cycle_ended: dict[str, Any]) -> None:
        with self._file.open("a") as file:
            file.write(json.dumps(cycle_ended) + "\n")


def test_each_cycle_visits_each_page_once_and_ends_with_an_event(tmp_path: Path) -> None:
    """The command, the signal and the file say the same, and the crawl ends after its last cycle."""
    told, by_signal = tmp_path / "told.jsonl", tmp_path / "signal.jsonl"
    settings = {
        **SETTINGS,
        "BIGCRAWL_CYCLE_COMMAND": f"sh -c 'cat >> {told}'",
        "EXTENSIONS": json.dumps({f"{__name__}.{Hearing.__name__}": 1}),
        "HEARD": by_signal,
    }
    arguments = {"cycles": "every 5s", "visits": str(VISITS)}
    with SimulatedWeb(tmp_path / "web", hosts=4, pages=10) as web:
        with Crawl(tmp_path / "crawl", web.seeds, settings, arguments=arguments, spider="recrawl") as crawl:
            assert crawl.run() == 0, crawl.log.read_text()[-4000:]
            pages = crawl.asked("status")["pages"]
        expected = web.expected()
        log = [each for each in web.exchanges() if each.target != "/robots.txt"]
    events = events_in(told)
    assert events == events_in(by_signal)
    assert events[-1] == json.loads((tmp_path / "crawl" / "state" / "test" / "cycle.json").read_text())
    assert [event["cycle"] for event in events] == list(range(1, len(events) + 1))
    assert len(events) >= VISITS
    assert events[-1]["complete"]
    assert sum(event["pages"] for event in events) == pages
    whole = {url for url, status in expected.items() if status == 200}
    visits = Counter(f"http://{each.host}:{web.saved.port}{each.target}" for each in log if each.status in (200, 304))
    assert {url: visits[url] for url in whole} == dict.fromkeys(whole, VISITS)


def test_a_cycle_whose_announcement_kills_the_node_is_announced_again(tmp_path: Path) -> None:
    """kill -9 while the command runs: the next node runs it again, for the same cycle, before the crawl ends."""
    told, hook = tmp_path / "told.jsonl", tmp_path / "hook.sh"
    hook.write_text(f"cat >> {told}\n[ $(wc -l < {told}) != 1 ] || kill -9 $PPID\n")
    settings = {**SETTINGS, "BIGCRAWL_CYCLE_COMMAND": f"sh {hook}"}
    arguments = {"cycles": "every 1d", "visits": "1"}
    with (
        SimulatedWeb(tmp_path / "web", hosts=2, pages=5) as web,
        Crawl(tmp_path / "crawl", web.seeds, settings, arguments=arguments, spider="recrawl") as crawl,
    ):
        assert crawl.run() == -9
        assert crawl.run() == 0, crawl.log.read_text()[-4000:]
        first, *again = events_in(told)
        assert crawl.run() == 0, crawl.log.read_text()[-4000:]
        assert len(events_in(told)) == 1 + len(again), "a crawl that has ended announces nothing"
    assert [event["cycle"] for event in again] == [first["cycle"]]
    assert again[0]["complete"]
    assert again[0]["urls"] == first["urls"] > 10
