from __future__ import annotations

import logging
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import FormRequest, Request, Spider
from scrapy.dupefilters import RFPDupeFilter
from scrapy.settings import Settings
from scrapy.utils.misc import build_from_crawler
from scrapy.utils.test import get_crawler

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.scheduler.dupefilter import DIRECTORY, DrumDupeFilter

if TYPE_CHECKING:
    from collections.abc import Iterator


class Site:
    """A fingerprinter of a user's own: all requests to a page are one; and its bytes are no hash."""

    def fingerprint(self, request: Request) -> bytes:
        return request.url.partition("?")[0].encode()


def opened(cls: type[RFPDupeFilter], **settings: Any) -> Any:
    """The filter as the stock scheduler makes it, and its crawler's stats."""
    crawler = get_crawler(Spider, {"TELNETCONSOLE_ENABLED": False, **settings})
    crawler._apply_settings()
    found = build_from_crawler(cls, crawler)
    found.open()
    return found


def requests(seed: int, count: int) -> Iterator[Request]:
    """Requests of every kind that has a fingerprint of its own, many of them twice."""
    dice = random.Random(seed)
    for _ in range(count):
        url = f"http://a.example/{dice.randrange(count // 3)}"
        kind = dice.randrange(6)
        if kind == 0:
            yield FormRequest(url, formdata={"a": str(dice.randrange(3))})
        elif kind == 1:
            yield Request(f"{url}?b=2&a={dice.randrange(2)}#fragment")
        elif kind == 2:
            yield Request(f"{url}?a={dice.randrange(2)}&b=2", method="POST", body=b"x" * dice.randrange(2))
        else:
            yield Request(url)


@pytest.fixture
def spider() -> Spider:
    crawler = get_crawler(Spider, {"TELNETCONSOLE_ENABLED": False})
    return crawler._create_spider("some")


def test_it_answers_as_scrapys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of all kinds, over runs and over a stop and a start, are seen when Scrapy's filter has seen them."""
    monkeypatch.setattr("bigcrawl.drum.key_set.KeySet.__init__.__defaults__", (None, 300))
    theirs_dir, ours_dir = tmp_path / "theirs", tmp_path / "ours"
    answers = []
    for life in range(3):
        theirs = opened(RFPDupeFilter, JOBDIR=str(theirs_dir))
        ours = opened(DrumDupeFilter, JOBDIR=str(ours_dir))
        for request in requests(life, 2000):
            answers.append(ours.request_seen(request))
            assert answers[-1] == theirs.request_seen(request)
        theirs.close("finished")
        ours.close("finished")
    assert 1500 < answers.count(False) < 4500
    assert list((ours_dir / DIRECTORY / "b000").iterdir()), "there were runs to look up"


def test_a_users_fingerprinter_decides(tmp_path: Path) -> None:
    """REQUEST_FINGERPRINTER_CLASS is used, and what it returns need not be a hash."""
    ours = opened(DrumDupeFilter, JOBDIR=str(tmp_path), REQUEST_FINGERPRINTER_CLASS=Site)
    seen = [ours.request_seen(Request(f"http://a.example/long/path/{n % 5}?{n}")) for n in range(8)]
    assert seen == [False] * 5 + [True] * 3
    ours.close("finished")


def test_duplicates_are_logged_and_counted_as_scrapys(caplog: pytest.LogCaptureFixture, spider: Spider) -> None:
    """The first duplicate is logged, all with DUPEFILTER_DEBUG, and each is in dupefilter/filtered."""
    caplog.set_level(logging.DEBUG)
    told = {}
    for cls in (RFPDupeFilter, DrumDupeFilter):
        for debug in (False, True):
            found = opened(cls, DUPEFILTER_DEBUG=debug)
            caplog.clear()
            for _ in range(3):
                found.log(Request("http://a.example/"), spider)
            told[cls, debug] = [record.getMessage() for record in caplog.records]
            found.close("finished")
    assert told[DrumDupeFilter, False] == told[RFPDupeFilter, False]
    assert told[DrumDupeFilter, True] == told[RFPDupeFilter, True]
    assert (len(told[DrumDupeFilter, False]), len(told[DrumDupeFilter, True])) == (1, 3)
    assert spider.crawler.stats is not None
    assert spider.crawler.stats.get_value("dupefilter/filtered") == 12


def test_without_jobdir_nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The set lies in a temporary directory that is gone when the crawl has ended."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ours = opened(DrumDupeFilter)
    assert not ours.request_seen(Request("http://a.example/"))
    assert len(list(tmp_path.iterdir())) == 1
    ours.close("finished")
    assert list(tmp_path.iterdir()) == []
    ours.close("twice")


def test_a_full_disk_does_not_stop_a_crawl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """While the disk fails, answers stay exact from memory, one line says so, and all is written once it has room."""
    ours = opened(DrumDupeFilter, JOBDIR=str(tmp_path))
    room: list[bool] = []
    write = ours._keys.write

    def write_if_room(**options: Any) -> None:
        if not room:
            raise TransientStoreError("No space left on device")
        write(**options)

    monkeypatch.setattr(ours._keys, "write", write_if_room)
    urls = [Request(f"http://a.example/{number}") for number in range(3000)]
    assert not any(ours.request_seen(url) for url in urls)
    assert all(ours.request_seen(url) for url in urls)
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    room.append(True)
    ours.close("finished")
    again = opened(DrumDupeFilter, JOBDIR=str(tmp_path))
    assert all(again.request_seen(url) for url in urls)
    again.close("finished")


def test_it_says_that_it_does_not_read_scrapys_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A job that began with Scrapy's filter is told that it begins anew."""
    Path(tmp_path, "requests.seen").write_bytes(b"\x00\x01a")
    opened(DrumDupeFilter, JOBDIR=str(tmp_path)).close("finished")
    assert "requests.seen is not read" in caplog.text


def test_the_setting_names_it() -> None:
    """The path that the documentation gives is importable by Scrapy."""
    from scrapy.utils.misc import load_object

    settings = Settings({"DUPEFILTER_CLASS": "bigcrawl.scheduler.dupefilter.DrumDupeFilter"})
    assert load_object(settings["DUPEFILTER_CLASS"]) is DrumDupeFilter
