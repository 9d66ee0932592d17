from __future__ import annotations

import logging
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mmh3
import pytest
from scrapy import FormRequest, Request, Spider
from scrapy.dupefilters import RFPDupeFilter
from scrapy.settings import Settings
from scrapy.utils.misc import build_from_crawler
from scrapy.utils.test import get_crawler

from bigcrawl.drum.key_set import KeySet
from bigcrawl.exceptions import CorruptionError, TransientStoreError
from bigcrawl.scheduler.dupefilter import DIRECTORY, KEY_FILE, DrumDupeFilter
from bigcrawl.url.key import HASH_SEED
from tests.support.logs import of_bigcrawl

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
            told[cls, debug] = [line for line in caplog.messages if "duplicate" in line]
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
    assert [record.levelname for record in of_bigcrawl(caplog)] == ["ERROR"]
    room.append(True)
    ours.close("finished")
    again = opened(DrumDupeFilter, JOBDIR=str(tmp_path))
    assert all(again.request_seen(url) for url in urls)
    again.close("finished")


def test_it_says_that_it_does_not_read_scrapys_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A job that began with Scrapy's filter is told that it begins anew."""
    Path(tmp_path, "requests.seen").write_bytes(b"\x00\x01a")
    opened(DrumDupeFilter, JOBDIR=str(tmp_path)).close("finished")
    assert "requests.seen could not be read" in caplog.text


def test_the_setting_names_it() -> None:
    """The path that the documentation gives is importable by Scrapy."""
    from scrapy.utils.misc import load_object

    settings = Settings({"DUPEFILTER_CLASS": "bigcrawl.scheduler.dupefilter.DrumDupeFilter"})
    assert load_object(settings["DUPEFILTER_CLASS"]) is DrumDupeFilter


def test_a_job_has_a_secret_that_it_keeps(tmp_path: Path) -> None:
    """Two jobs hash the same request to other keys, and a resumed one as before."""
    (tmp_path / "other").mkdir()
    request = Request("http://a.example/")
    for directory in (tmp_path, tmp_path / "other", tmp_path):
        found = opened(DrumDupeFilter, JOBDIR=str(directory))
        assert found.request_seen(request) is (directory is tmp_path and (tmp_path / "other" / KEY_FILE).exists())
        found.close("finished")
    assert (tmp_path / KEY_FILE).read_bytes() != (tmp_path / "other" / KEY_FILE).read_bytes()


def test_a_job_begun_without_a_secret_goes_on(tmp_path: Path) -> None:
    """What an earlier version has seen is seen."""
    request = Request("http://a.example/")
    found = opened(DrumDupeFilter, JOBDIR=str(tmp_path))
    (tmp_path / KEY_FILE).unlink()
    keys = KeySet(tmp_path / DIRECTORY)
    keys.add(mmh3.hash64(found.fingerprinter.fingerprint(request), HASH_SEED, signed=False)[0])
    keys.close()
    resumed = opened(DrumDupeFilter, JOBDIR=str(tmp_path))
    assert resumed.request_seen(request)
    assert not (tmp_path / KEY_FILE).exists()


def test_a_damaged_secret_is_told(tmp_path: Path) -> None:
    """It is never replaced in silence: all that was seen would be new."""
    (tmp_path / KEY_FILE).write_bytes(b"short")
    with pytest.raises(CorruptionError, match=KEY_FILE):
        opened(DrumDupeFilter, JOBDIR=str(tmp_path))
