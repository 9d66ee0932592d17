"""The WARC pipeline in a plain project that is killed and started again: what the server saw is in the files."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.support.crawling.plain_project import Answer, NotedSite, PlainProject
from tests.support.crawling.verdicts import warc_files
from tests.support.running.processes import wait_until
from tests.unit.warc.reading import read_checked

if TYPE_CHECKING:
    from pathlib import Path

PLACES = 4
QUICK = 150


def test_killed_crawl_has_stored_all_but_what_was_in_process(tmp_path: Path) -> None:
    """kill -9 costs at most the exchanges under way; the next run closes the file and goes on in one of its own."""
    settings = {
        "ITEM_PIPELINES": {"bigcrawl.pipelines.warc.WarcPipeline": 900},
        "BIGCRAWL_WARC_DIR": "warc",
        "CONCURRENT_REQUESTS": PLACES,
    }
    with NotedSite() as site, PlainProject(tmp_path, **settings) as project:

        def answer(n: int) -> Answer:
            """However late the kill comes, the crawl is not at its end: it waits for answers until then."""
            return Answer(body=b"%d" % n * 500, seconds=60 if len(site.visits) >= QUICK else 0.01)

        pages = {f"/{n}": lambda _, n=n: answer(n) for n in range(2 * QUICK)}
        site.answers.update(pages)
        project.start(*[site.url("127.0.0.2", path) for path in pages])
        wait_until(lambda: len(site.visits) > 100, "a crawl under way")
        assert project.process is not None
        project.process.kill()
        project.process.wait()
        served = Counter(site.paths())
        log = project.run(site.url("127.0.0.2", "/again"))
        assert project.stat("bigcrawl/warc/recovered_files") == 1
    assert "by this process alone" in log
    files = warc_files(tmp_path / "warc")
    assert len(files) == 2
    responses = [record for path in files for record in read_checked(path) if record.type == "response"]
    requests = [record for path in files for record in read_checked(path) if record.type == "request"]
    assert len(responses) == len(requests)
    stored = Counter(urlsplit(record.headers["WARC-Target-URI"]).path for record in responses)
    assert stored.pop("/again") == 1
    assert max(stored.values()) == 1
    assert (served - stored).total() <= PLACES
    assert {urlsplit(record.headers["WARC-Target-URI"]).path: record.body for record in responses}["/7"] == b"7" * 500
