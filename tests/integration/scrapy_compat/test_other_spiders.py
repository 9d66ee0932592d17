"""The other spiders of somebody else's project: rules, sitemaps, early ends, idle ones, broken ones."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.integration.scrapy_compat.project import Project
    from tests.integration.scrapy_compat.site import Site


@pytest.mark.parametrize("spider", ["shop-rules", "map", "items"])
def test_spider_gives_what_it_gives_on_scrapys_scheduler(
    project: Project, site: Site, crawl_name: str, spider: str
) -> None:
    """A CrawlSpider with rules, a SitemapSpider with an index, and slow and dropping item pipelines: the same
    requests, the same items.
    """
    known = {"origins": ",".join(site.origins)}
    stock = project.crawl_stock(spider, known)
    wanted = sorted(site.paths())
    site.forget()
    ours = project.crawl(spider, crawl_name, known)
    assert stock.status == ours.status == 0, ours.log
    assert len(stock.items) >= 5
    assert ours.bag == stock.bag
    assert sorted(site.paths()) == wanted
    assert "Closing spider (finished)" in ours.log


def test_finished_crawl_says_so_and_other_starts_are_its_own(project: Project, site: Site, crawl_name: str) -> None:
    """The same command a second time fetches nothing and says why; another start of the spider is run, and
    what it shares with the first is not fetched again.
    """

    def crawl(pages: int) -> tuple[list[str], str]:
        site.forget()
        ours = project.crawl("pages", crawl_name, {"origins": site.origins[0], "pages": pages})
        assert ours.status == 0, ours.log
        return sorted(item["url"] for item in ours.of_kind("page")), ours.log

    pages, log = crawl(3)
    assert pages == ["/page/0", "/page/1", "/page/2"]
    assert "is finished" not in log
    pages, log = crawl(3)
    assert pages == site.paths() == []
    assert f"crawl {crawl_name} is finished: 3 pages" in log
    assert "Closing spider (finished)" in log
    pages, log = crawl(5)
    assert pages == sorted(site.paths()) == ["/page/3", "/page/4"]


@pytest.mark.long("crawls of two spiders; starts of one spider are told apart here")
def test_spiders_of_a_project_have_crawls_of_their_own(project: Project, site: Site) -> None:
    """Without BIGCRAWL_CRAWL a crawl is the spider's: none takes, or believes to have seen, another's URLs.

    The rest is what a newcomer's project gets without a setting of ours: an embedded server, state and pages
    in the working directory, and the project's own DOWNLOAD_DELAY between the pages of a host.
    """
    settings = {"BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": 1, "DOWNLOAD_DELAY": 0.3}
    known = {"origins": site.origins[0], "pages": 2}
    stopped = project.run("closing", {**settings, "CLOSE_AT_TWO": 1}, known)
    assert stopped.status == 0, stopped.log
    assert "Closing spider (enough)" in stopped.log
    hits = [hit for hit in site.hits if hit.origin == site.origins[0]]
    gaps = [after.started - before.ended for before, after in pairwise(hits)]
    assert min(gaps) >= 0.29, "the server's clock starts a little after the node's"
    site.forget()
    other = project.run("pages", settings, known)
    assert sorted(item["url"] for item in other.of_kind("page")) == ["/page/0", "/page/1"]
    assert sorted(path.name for path in (project.directory / "state").glob("*/redis")) == ["redis"] * 2
    assert {path.name for path in (project.directory / "state").iterdir()} >= {"closing", "pages"}
    assert list((project.directory / "warc").glob("*.warc.gz"))
    asked = project.scrapy("frontier", "status")
    assert (asked.returncode, asked.stdout) == (1, "")
    assert "there are several crawls here; choose one with -s BIGCRAWL_CRAWL=: closing, pages" in asked.stderr


def test_closed_spider_goes_on_where_it_ended(project: Project, site: Site, crawl_name: str) -> None:
    """CloseSpider in a callback ends the run with its reason; the next fetches the rest, and only that."""
    known = {"origins": site.origins[0]}
    first = project.crawl("closing", crawl_name, known, {"CLOSE_AT_TWO": 1})
    assert first.status == 0, first.log
    assert "Closing spider (enough)" in first.log
    assert site.paths()[-1] in ("/page/2", "/page/3"), "the next fetch may be under way when a page is parsed"
    second = project.crawl("closing", crawl_name, known)
    assert second.status == 0, second.log
    assert "Closing spider (finished)" in second.log
    wanted = ["/", *(f"/page/{number}" for number in range(6))]
    assert sorted(item["url"] for item in first.items + second.items) == wanted
    assert sorted(site.paths()) == wanted


def test_idle_spider_may_ask_for_more(project: Project, site: Site, crawl_name: str) -> None:
    """What a spider_idle handler asks for is fetched before the crawl ends, and by a resumed one too."""
    known = {"origins": site.origins[0]}
    ours = project.crawl("idle", crawl_name, known)
    assert ours.status == 0, ours.log
    wanted = ["/", *(f"/page/{turn}-{number}" for turn in (1, 2) for number in range(3))]
    assert sorted(item["url"] for item in ours.items) == wanted
    assert sorted(site.paths()) == wanted


def test_start_that_fails_does_not_hang_the_crawl(project: Project, site: Site, crawl_name: str) -> None:
    """What a start yielded before it failed is fetched, the reason is Scrapy's, the next run starts again."""
    known = {"origins": site.origins[0]}
    broken = project.crawl("broken-start", crawl_name, known)
    assert "ValueError: a start of somebody's that fails" in broken.log
    assert "Closing spider (start_error)" in broken.log
    assert sorted(site.paths()) == ["/page/1", "/page/2"]
    site.forget()
    mended = project.crawl("broken-start", crawl_name, known, {"START_IS_MENDED": 1})
    assert mended.status == 0, mended.log
    assert site.paths() == ["/page/3"]
    assert "Closing spider (finished)" in mended.log


def test_request_that_cannot_be_kept_is_told_and_the_crawl_goes_on(
    project: Project, site: Site, crawl_name: str
) -> None:
    """One line names the key of what cannot be stored, once; it is counted each time; all else is fetched."""
    ours = project.crawl("impossible", crawl_name, {"origins": site.origins[0]})
    assert ours.status == 0, ours.log
    assert [item["url"] for item in ours.items] == ["/page/fine"]
    assert site.paths() == ["/", "/page/fine"]
    files, function, spider = ours.lines("ERROR")
    assert "meta['shelf']['files'][1] holds a StringIO" in files
    assert "callback is <function _nothing" in function
    assert "make it a method of the spider and write callback=self.NAME" in function
    assert "cb_kwargs['spider'] holds a ImpossibleSpider" in spider
    assert "'bigcrawl/dropped/not-storable': 4," in ours.log
    assert "'bigcrawl/dropped/url-scheme': 1," in ours.log
    assert "Traceback" not in ours.log
    assert "Closing spider (finished)" in ours.log


def test_http_cache_answers_without_the_site(project: Project, site: Site, crawl_name: str) -> None:
    """Scrapy's HTTP cache goes before the fetch: a page from it counts as one, and is not asked for again."""
    settings = {"HTTPCACHE_ENABLED": 1, "HTTPCACHE_DIR": project.directory / "cache" / crawl_name}
    known = {"origins": site.origins[0], "pages": 3}
    first = project.crawl("pages", crawl_name, known, settings)
    site.forget()
    second = project.crawl("pages", f"{crawl_name}-again", known, settings)
    assert first.status == second.status == 0, second.log
    assert second.bag == first.bag
    assert len(second.items) == 4
    assert site.paths() == []
    assert "pages (any status)" in second.log
    assert second.log.partition("pages (any status)")[2].split()[0] == "3"


def test_commands_for_one_page_touch_no_crawl(project: Project, site: Site) -> None:
    """`scrapy fetch`, `shell` and `parse` work as without the add-on, however often, beside any crawl."""
    url = f"{site.origins[0]}/page/1"
    quick = ("--nolog", "-s", "DOWNLOAD_DELAY=0")
    before = sorted((project.directory / "state").glob("*"))
    for _ in range(2):
        done = project.scrapy("fetch", *quick, url)
        assert "<title>/page/1</title>" in done.stdout, done.stderr
    done = project.scrapy("shell", *quick, url, "-c", "response.css('title::text').get()")
    assert done.stdout.strip() == "/page/1", done.stderr
    arguments = ("--spider", "map", "-c", "parse_low", "-a", f"origins={site.origins[0]}")
    done = project.scrapy("parse", *quick, *arguments, url)
    assert "'kind': 'low'" in done.stdout, done.stderr
    assert sorted((project.directory / "state").glob("*")) == before
