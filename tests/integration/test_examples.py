"""The examples do what they say, on a server of this machine; they are run as their README says."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.support.running import warm

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = REPOSITORY / "examples"
CRAWL_S_MAX = 300
LOCAL = {
    "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": 1,
    "BIGCRAWL_HOST_DELAY": 0,
    "BIGCRAWL_SERVER_DELAY": 0,
    "BIGCRAWL_PARTITIONS": 8,
}

BEES = "bees and honey, " * 5
ESSAY = [
    "A colony of honey bees has one queen, some hundred drones, and tens of thousands of workers in summer.",
    "The workers clean the cells, feed the larvae, build the comb, and fly out for nectar at the end of their lives.",
    "Nobody tells them what to do next; they look at what is missing, and at what the others are doing.",
]
ESSAY_TEXT = " ".join(ESSAY)
SITE = {
    # What the focused spider meets: each page leads to ten more.
    "index.html": "<a href=/beehive.html>b</a> <a href=/cars.html>c</a>",
    "beehive.html": BEES + "".join(f"<a href=/bee{n}.html>{n}</a>" for n in range(10)),
    "cars.html": "cars " + "".join(f"<a href=/car{n}.html>{n}</a>" for n in range(10)),
    **{f"bee{n}.html": BEES for n in range(10)},
    **{f"car{n}.html": "cars" for n in range(10)},
    "page/1.html": "<a href=/page/2.html>next</a> <a href=/author/x.html>X</a>",
    "page/2.html": "<a href=/page/1.html>back</a> <a href=/author/y.html>Y</a> <a href=/other.html>no</a>",
    "author/x.html": "<h1>X. Ample</h1>",
    "author/y.html": "<h1>Why</h1>",
    "album/index.html": "<link rel=stylesheet href=a.css><img src=i.png><a href=gone.html>g</a><a href=b.html>b</a>",
    "album/b.html": "<a href=http://127.0.0.9/>away</a>",
    "album/a.css": "p {}",
    "album/i.png": "png",
    # What a page says, between what all pages of a site say.
    "essay/index.html": "<html><head><title>On bees</title></head><body><nav><a href=/essay/imprint.html>Imprint</a>"
    "Menu</nav><article><h1>On bees</h1>"
    + "".join(f"<p>{line}</p>" for line in ESSAY)
    + "</article><footer>Footer of all"
    "</footer></body></html>",
    "essay/imprint.html": "<title>Imprint</title><p>Bees, again",
    # A host's pages in three levels; the last one of each level is the one that leads on.
    "tree/index.html": "<title>0</title>" + "".join(f"<a href=1-{n}.html>{n}</a>" for n in range(5)),
    **{f"tree/1-{n}.html": f"<title>1-{n}</title><a href=/tree/2-{n}.html>on</a>" for n in range(5)},
    **{f"tree/2-{n}.html": f"<title>2-{n}</title><a href=/tree/3-{n}.html>on</a>" for n in range(5)},
    **{f"tree/3-{n}.html": "<title>3</title><a href=http://127.0.0.9/>away</a>" for n in range(5)},
    # Its answer is the same for each word: five pages of the tree.
    "find/index.html": "<form action=results.html><input name=q><button>Search</button></form>",
    "find/results.html": "".join(f"<a href=/tree/1-{n}.html>{n}</a>" for n in range(5)),
    "list.xml": "<sitemapindex><sitemap><loc>/list1.xml</loc></sitemap></sitemapindex>",
    "list1.xml": "<urlset>" + "".join(f"<url><loc>/tree/1-{n}.html</loc></url>" for n in range(3)) + "</urlset>",
    "feed.xml": "<rss>"
    + "".join(f"<item><title>No. {n}</title><link>/tree/1-{n}.html</link></item>" for n in range(3)),
}

SITE_PATHS = [f"/{name}" for name in SITE]


class Site:
    """Some files on loopback, and which of them were asked for."""

    def __init__(self, directory: Path) -> None:
        for name, text in SITE.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.directory = directory
        self.asked: list[str] = []
        asked = self.asked

        class Handler(SimpleHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_request(self, *_: object) -> None:
                asked.append(self.path)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=directory))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    served = Site(tmp_path / "site")
    thread = threading.Thread(target=served.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    served.server.shutdown()
    served.server.server_close()
    thread.join()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The examples where their crawls may leave what they leave."""
    return shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))


def train(project: Path, *words: str) -> None:
    """Run `python -m crawls.topic_model`."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = warm.run(["crawls.topic_model", *words], cwd=project, env=environment, timeout_s=CRAWL_S_MAX)
    assert done.returncode == 0, done.stderr


def crawl(project: Path, spider: str, *words: str, to: str = "items.csv", **settings: object) -> list[dict[str, Any]]:
    """Run `scrapy crawl`, to its end and without an error; the items."""
    command = ["scrapy", "crawl", spider, *words, "-O", to]
    command += [word for name, value in {**LOCAL, **settings}.items() for word in ("-s", f"{name}={value}")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_")}
    done = warm.run(command, cwd=project, env={**environment, "PYTHONPATH": str(REPOSITORY)}, timeout_s=CRAWL_S_MAX)
    assert done.returncode == 0, done.stderr
    assert "] ERROR: " not in done.stderr, done.stderr
    with (project / to).open() as items:
        return list(csv.DictReader(items)) if to.endswith(".csv") else list(map(json.loads, items))


@pytest.mark.long("one of the examples; others run here")
def test_focused_crawl_fetches_what_the_topic_leads_to_first(project: Path, site: Site, redis_url: str) -> None:
    """Pages of the topic are the items, and what they lead to is asked for before what other pages lead to."""
    words = ("-a", f"seeds={site.url}/index.html", "-a", "topic=bees honey")
    items = crawl(project, "focused", *words, BIGCRAWL_REDIS_URL=redis_url, CONCURRENT_REQUESTS=1)
    assert len(items) == 11
    assert {float(item["score"]) for item in items} == {1 - 0.5**10}
    last = {kind: max(i for i, path in enumerate(site.asked) if path.startswith(kind)) for kind in ("/bee", "/car")}
    assert last["/bee"] < last["/car"]
    assert sorted(site.asked) == sorted(
        {"/robots.txt", *(f"/{name}" for name in SITE if "/" not in name and name.endswith(".html"))}
    )


@pytest.mark.system
def test_learned_crawl_fetches_what_its_model_takes_for_the_topic_first(
    project: Path, site: Site, redis_url: str
) -> None:
    """The model is trained by the command of the README, from some pages and words, and kept as numbers."""
    rows = [(1, BEES), (1, "honey from bees"), (1, "bee"), (0, "cars and engines"), (0, "car"), (0, "c d 1 2")]
    with (project / "labelled.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("label", "text"), *rows])
    train(project, "labelled.csv", "bees.npz")
    words = ("-a", f"seeds={site.url}/index.html", "-a", "model=bees.npz")
    items = crawl(project, "learned", *words, BIGCRAWL_REDIS_URL=redis_url, CONCURRENT_REQUESTS=1)
    assert {item["url"].removeprefix(site.url) for item in items} == {path for path in SITE_PATHS if "bee" in path}
    last = {kind: max(i for i, path in enumerate(site.asked) if path.startswith(kind)) for kind in ("/bee", "/car")}
    assert last["/bee"] < last["/car"]


@pytest.mark.long("two crawls; tests/integration/stock compares more")
def test_moved_spider_gives_what_it_gave_on_scrapys_scheduler(project: Path, site: Site, redis_url: str) -> None:
    """With the add-on and without it the items are the same, and so are the pages."""
    words = ("-a", f"start={site.url}/page/1.html")
    items = crawl(project, "moved", *words, BIGCRAWL_REDIS_URL=redis_url)
    pages = sorted(path for path in site.asked if path != "/robots.txt")
    site.asked.clear()
    assert sorted(item["author"] for item in items) == ["Why", "X. Ample"]
    before = crawl(project, "moved", *words, ADDONS="{}")
    assert sorted(map(str, items)) == sorted(map(str, before))
    assert pages == sorted(set(site.asked))


@pytest.mark.long("reads what it stored; the examples that always run are here, too")
def test_archive_holds_the_site_and_what_it_is_shown_with(project: Path, site: Site, redis_url: str) -> None:
    """Each page, image and style sheet of the host is stored once, and so is the answer that a page is not there."""
    crawl(project, "archive", "-a", f"site={site.url}/album/index.html", BIGCRAWL_REDIS_URL=redis_url)
    stored = {}
    for path in (project / "warc").glob("*.warc.gz"):
        with path.open("rb") as warc:
            for record in ArchiveIterator(warc):
                if record.rec_type == "response":
                    uri = record.rec_headers.get_header("WARC-Target-URI").removeprefix(site.url)
                    assert uri not in stored
                    stored[uri] = record.http_headers.get_statuscode(), record.content_stream().read()
    assert stored.pop("/robots.txt", ("404",))[0] == "404"
    assert {uri: status for uri, (status, _) in stored.items()} == {
        **{f"/{name}": "200" for name in SITE if name.startswith("album/")},
        "/album/gone.html": "404",
    }
    assert stored["/album/i.png"][1] == b"png"


@pytest.mark.long("one of the examples; others run here")
def test_titles_come_level_by_level_up_to_the_bound(project: Path, site: Site, redis_url: str) -> None:
    """The host is visited breadth-first; after so many URLs of it, the rest is withheld, and the crawl ends."""
    words = ("-a", f"seeds={site.url}/tree/index.html", "-a", "pages=9", "-a", "depth=2")
    items = crawl(project, "titles", *words, BIGCRAWL_REDIS_URL=redis_url)
    assert [item["title"] for item in items] == ["0", *(f"1-{n}" for n in range(5)), *(f"2-{n}" for n in range(3))]
    assert [item["depth"] for item in items] == ["0", *"1" * 5, *"2" * 3]
    assert len(site.asked) == len(set(site.asked)) == 10, "with its robots.txt"


def test_listed_pages_are_fetched_and_no_others(project: Path, site: Site, redis_url: str) -> None:
    """By way of an index of sitemaps; the links of the pages are not followed."""
    items = crawl(project, "listed", "-a", f"seeds={site.url}/list.xml", BIGCRAWL_REDIS_URL=redis_url)
    assert sorted(item["title"] for item in items) == ["1-0", "1-1", "1-2"]
    pages = [f"/tree/1-{n}.html" for n in range(3)]
    assert sorted(site.asked) == sorted(["/robots.txt", "/list.xml", "/list1.xml", *pages])


def test_news_are_the_entries_of_a_feed_and_their_pages(project: Path, site: Site, redis_url: str) -> None:
    """An item for each entry, and one for its page."""
    options = ("-a", f"seeds={site.url}/feed.xml", "-s", "FEED_EXPORT_FIELDS=url,title,words")
    items = crawl(project, "news", *options, BIGCRAWL_REDIS_URL=redis_url)
    assert sorted(item["title"] for item in items if item["title"]) == ["No. 0", "No. 1", "No. 2"]
    assert sorted(item["words"] for item in items if item["words"]) == ["2", "2", "2"]
    assert {item["url"].removeprefix(site.url) for item in items} == {f"/tree/1-{n}.html" for n in range(3)}
    assert len(site.asked) == len(set(site.asked)) == 5


@pytest.mark.long("fetches a page sixty times")
def test_walks_say_how_many_pages_there_are(project: Path, site: Site, redis_url: str) -> None:
    """The steps are fetched again and again, and the command reads what the example wrote."""
    options = ("-a", f"seeds={site.url}/index.html", "-a", "walks=60")
    items = crawl(project, "walks", *options, to="walks.jsonl", BIGCRAWL_REDIS_URL=redis_url)
    pages = {path for path in SITE_PATHS if path.count("/") == 1 and path.endswith(".html")}
    assert pages >= set(site.asked) - {"/robots.txt"}
    assert site.asked.count("/index.html") == 60
    assert len(items) == len(site.asked) - 1
    assert all(item["words"] for item in items)
    done = warm.run(["bigcrawl.sampling", "walks.jsonl"], cwd=project, timeout_s=CRAWL_S_MAX)
    told = re.search(r"pages among them: (\d+) \((\d+) to (\d+)\)", done.stdout)
    assert told, done.stderr
    assert int(told[2]) <= len(pages) <= int(told[3])


@pytest.mark.long("crawls twice; the examples that always run are here, too")
def test_fresh_are_pages_that_are_new_or_have_changed(project: Path, site: Site, redis_url: str) -> None:
    """Each page is asked for three times, and is an item once: it does not change."""
    words = ("-a", f"seeds={site.url}/page/1.html", "-a", "policy=periodic", "-a", "every=2", "-a", "visits=3")
    items = crawl(project, "fresh", *words, BIGCRAWL_REDIS_URL=redis_url, BIGCRAWL_REVISIT_SECONDS_MIN=1)
    pages = {f"{site.url}/{name}" for name in ("page/1.html", "page/2.html", "author/x.html", "author/y.html")}
    assert sorted((item["url"], item["change"]) for item in items) == sorted((url, "added") for url in pages)
    assert all(site.asked.count(url.removeprefix(site.url)) == 3 for url in pages)


def search(project: Path, *words: str) -> list[str]:
    """The paths of the pages that `python -m crawls.search find` finds."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = warm.run(["crawls.search", "find", "search.db", *words], cwd=project, env=environment, timeout_s=CRAWL_S_MAX)
    assert done.returncode == 0, done.stderr
    return sorted(re.findall(r"^http://[^/]+(/\S*)$", done.stdout, re.MULTILINE))


def test_searched_pages_are_found_as_the_last_cycle_saw_them(project: Path, site: Site, redis_url: str) -> None:
    """The command at the end of a cycle brings the index up to date: new words are found, and what is gone is not."""
    changed, gone = (site.directory / "tree" / f"1-{n}.html" for n in (0, 1))
    hook = project / "hook.sh"
    hook.write_text(
        f"{sys.executable} -m crawls.search add search.db pages.jsonl\n"
        f"echo '<title>A hive</title>of hornets' > {changed}\n"
        f"rm -f {gone}\n"
    )
    words = ("-a", f"seeds={site.url}/tree/index.html", "-a", "cycles=every 5s", "-a", "visits=4")
    options = {"BIGCRAWL_CYCLE_COMMAND": f"sh {hook}", "DEPTH_LIMIT": 1, "BIGCRAWL_REDIS_URL": redis_url}
    items = crawl(project, "searched", *words, to="pages.jsonl", **options)
    assert {item["change"] for item in items} == {"added", "changed", "gone"}
    assert search(project, "hornets") == ["/tree/1-0.html"]
    assert search(project, "on") == ["/tree/1-2.html", "/tree/1-3.html", "/tree/1-4.html"]


@pytest.mark.long("an example; tests/integration/spiders/test_forms.py crawls")
def test_records_are_those_that_a_form_finds(project: Path, site: Site, redis_url: str) -> None:
    """With their titles; the item of the form says how many there are."""
    words = ("-a", f"seeds={site.url}/find/index.html", "-a", "words=bees honey wax", "-a", "records=/tree/1-")
    items = crawl(project, "records", *words, "-a", "window=3", to="r.jsonl", BIGCRAWL_REDIS_URL=redis_url)
    assert {item["title"] for item in items if "title" in item} == {f"1-{n}" for n in range(5)}
    [form] = [item for item in items if "form" in item]
    assert (form["records"], form["estimated"]) == (5, 5)


@pytest.mark.system
def test_words_and_texts_are_those_of_stored_pages(project: Path, site: Site, redis_url: str) -> None:
    """One spider fetches pages, others read them again: nothing is asked for twice, and menus are no text."""
    own = {"BIGCRAWL_REDIS_URL": redis_url, "BIGCRAWL_CRAWL": "essay"}
    crawl(project, "archive", "-a", f"site={site.url}/essay/index.html", to="none.jsonl", **own)
    site.asked.clear()
    index, imprint = (f"{site.url}/essay/{name}.html" for name in ("index", "imprint"))
    words = {item["url"]: item["words"] for item in crawl(project, "words", to="words.jsonl", BIGCRAWL_SOURCE="warc")}
    assert words.keys() == {index, imprint}
    assert words[index]["workers"] == sorted(words[index]["workers"])
    assert len(words[index]["workers"]) == ESSAY_TEXT.count("workers")
    assert words[index]["footer"]
    found = crawl(project, "words", "-a", "text=crawls.texts.main_text", to="main.jsonl", BIGCRAWL_SOURCE="warc/*.gz")
    [main] = [item["words"] for item in found if item["url"] == index]
    assert main["queen"]
    assert "footer" not in main
    [text] = [item for item in crawl(project, "texts", to="t.jsonl", BIGCRAWL_SOURCE="warc") if item["url"] == index]
    assert text["title"] == "On bees"
    assert all(line in text["text"] for line in ESSAY)
    assert "Menu" not in text["text"]
    assert site.asked == []


def test_every_example_is_run_here_and_told() -> None:
    """A spider of the examples stands in their README, with a command, and has a test in this file."""
    spiders = [path.stem for path in (EXAMPLES / "crawls" / "spiders").glob("[a-z]*.py")]
    told, here = (EXAMPLES / "README.md").read_text("utf-8"), Path(__file__).read_text("utf-8")
    assert len(spiders) == 13
    for spider in spiders:
        assert f"\nscrapy crawl {spider} " in told
        assert f'crawl(project, "{spider}"' in here
