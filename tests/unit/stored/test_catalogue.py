"""Which answer of a URL is taken, and in which order pages come."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.page_index.index_files import index_path
from bigcrawl.stored.catalogue import PageCatalogue, read_catalogue
from bigcrawl.stored.files import source_files
from bigcrawl.stored.pages import PageReader
from tests.unit.stored.warc_files import page, stored

if TYPE_CHECKING:
    from pathlib import Path

A, B, C = (f"http://{name}.example/" for name in "abc")


def bodies(catalogue: PageCatalogue) -> list[tuple[str, bytes]]:
    """URL and body of each page, in order."""
    reader = PageReader(catalogue, 0)
    pages = [reader.read_page(catalogue.place_of_rank(rank)) for rank in range(len(catalogue))]
    reader.close()
    return [(one.url, one.body) for one in pages]


@pytest.mark.parametrize("is_indexed", [True, False])
def test_pages_come_in_the_order_of_their_files_and_the_last_answer_counts(tmp_path: Path, is_indexed: bool) -> None:
    """With an index and without one; a slow page whose fetch began early comes when it was written."""
    pages = [page(A, b"1", 1), page(B, b"2", 9), page(C, b"slow", 3), page(A, b"3", 10)]
    path = stored(tmp_path, *pages, is_indexed=is_indexed)
    catalogue = read_catalogue([path])
    assert bodies(catalogue) == [(B, b"2"), (C, b"slow"), (A, b"3")]
    assert (len(catalogue), catalogue.captures) == (3, 4)
    assert [catalogue.rank_of(url) for url in (A, B, C, "http://d.example/")] == [2, 0, 1, -1]
    assert catalogue.ranks_of([]).tolist() == []


def test_pages_of_several_nodes_come_by_time(tmp_path: Path) -> None:
    """Their files were written at the same time."""
    one = stored(tmp_path / "1", page(A, b"1", 1), page(C, b"3", 3))
    other = stored(tmp_path / "2", page(B, b"2", 2), page(A, b"4", 4))
    assert bodies(read_catalogue([one, other])) == [(B, b"2"), (C, b"3"), (A, b"4")]


def test_a_time_and_answers_that_say_nothing_new(tmp_path: Path) -> None:
    """Until a time the last answer before it is taken, and what is younger does not exist; a 304 is no page."""
    path = stored(tmp_path, page(A, b"old", 0), page(A, b"new", 60), page(B, b"", 61), page(A, b"", 70, status=304))
    assert bodies(read_catalogue([path])) == [(A, b"new"), (B, b"")]
    assert bodies(read_catalogue([path], "202311142213")) == [(A, b"old")]
    assert bodies(read_catalogue([path], "2022")) == []


def test_robots_files_are_known_as_such(tmp_path: Path) -> None:
    """They are no pages for a spider that is given all."""
    path = stored(tmp_path, page(f"{A}robots.txt"), page(A))
    assert read_catalogue([path]).pages_but_robots().tolist() == [False, True]


def test_hosts_are_known_if_asked_for(tmp_path: Path) -> None:
    """Each by one answer, the first of the first file; others, and hosts of a catalogue without them, by none."""
    one = stored(tmp_path / "1", page(f"{A}x", b"1"), page(A, b"2"), page(B, b"3"), is_indexed=False)
    other = stored(tmp_path / "2", page(f"{A}y", b"4"), page("https://[::1]:8080/", b"5"))
    catalogue = read_catalogue([one, other], has_hosts=True)
    reader = PageReader(catalogue, 0)
    found = [catalogue.place_of_host(host) for host in ("a.example", "b.example", "::1")]
    assert [reader.read_page(place).body for place in found if place] == [b"1", b"3", b"5"]
    assert sorted(reader.read_page(place).body for place in catalogue.one_place_per_host()) == [b"1", b"3", b"5"]
    reader.close()
    assert catalogue.place_of_host("c.example") is None
    assert read_catalogue([one]).place_of_host("a.example") is None


def test_all_answers_of_a_url_are_found_the_last_one_first(tmp_path: Path) -> None:
    """Also those that are not taken; or those near a time first."""
    path = stored(tmp_path, page(A, b"1", 0), page(B), page(A, b"2", 5), page(A, b"", 6, status=304))
    catalogue = read_catalogue([path])
    reader = PageReader(catalogue, 0)
    assert [reader.read_page(place).body for place in catalogue.answers(A)] == [b"", b"2", b"1"]
    assert [reader.read_page(place).body for place in catalogue.answers(A, "20231114221325")] == [b"2", b"1", b""]
    assert list(catalogue.answers(C)) == []


def test_damaged_index_is_replaced_by_its_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It says so, with the remedy."""
    path = stored(tmp_path, page(A))
    index_path(path).write_text("damaged\n")
    assert len(read_catalogue([path])) == 1
    assert "scrapy frontier warc index" in caplog.text


def test_damaged_file_without_index_is_read_but_for_the_damage(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It says where the damage is."""
    path = stored(tmp_path, page(A), page(B, np.random.default_rng(1).bytes(5_000)), is_indexed=False)
    path.write_bytes(path.read_bytes()[:-3_000])
    caplog.set_level(logging.INFO)
    assert bodies(read_catalogue([path])) == [(A, b"<p>a page</p>")]
    assert "damaged at byte" in caplog.text
    assert "all other pages are read" in caplog.text


def test_empty_files_hold_no_page(tmp_path: Path) -> None:
    """A crawl that was killed at once leaves one."""
    path = tmp_path / "empty.warc.gz"
    path.touch()
    catalogue = read_catalogue(source_files(str(tmp_path)))
    assert source_files(str(path)) == [path]
    assert (len(catalogue), catalogue.rank_of(A), list(catalogue.answers(A))) == (0, -1, [])


def test_pattern_without_files_says_what_is_there(tmp_path: Path) -> None:
    """Nothing at all; a store; files that are still written; one without records."""
    for pattern in ("nowhere/*.warc.gz", str(tmp_path), str(tmp_path / "*.warc.gz")):
        with pytest.raises(ConfigError, match="there is no such file: name WARC files"):
            source_files(pattern)
    with pytest.raises(ConfigError, match="takes files of this machine: mount the store, or copy them here"):
        source_files("s3://bucket/*.warc.gz")
    (tmp_path / "c.warc.gz.open").touch()
    with pytest.raises(ConfigError, match="still being written; let that crawl end"):
        source_files(str(tmp_path))
    (tmp_path / "d.warc.gz").write_text("hello\r\n")
    with pytest.raises(ConfigError, match="is not a WARC or ARC file"):
        source_files(str(tmp_path))
