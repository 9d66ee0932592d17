"""The metrics of a running crawl: they agree with the origin's log, with Redis and with Scrapy's stats."""

from __future__ import annotations

import http.client
import json
import re
import socket
import socketserver
import time
from collections import Counter
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from bigcrawl.metrics.table import METRICS
from bigcrawl.metrics.text import KEPT_S
from bigcrawl.serving.sites import CONNECTIONS_MAX
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.ports import bind_lasting
from tests.support.running.processes import listening, no_strays_below, wait_until
from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OVER_MAX = CONNECTIONS_MAX + 20
OPENMETRICS = "application/openmetrics-text;version=1.0.0"
SECRETS = {"redis": "s3cret-redis", "proxy": "s3cret-proxy", "cookie": "s3cret-cookie"}
LISTENS = re.compile(r"metrics: http://127\.0\.0\.1:(\d+)/metrics")

EXTENSION = '''
import json
import os

from scrapy import signals


class Handler:
    """A project's own handler of spider_closed."""

    def __init__(self, crawler):
        self.crawler = crawler
        crawler.signals.connect(self.write_stats, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    def write_stats(self):
        with open(os.environ["STATS_FILE"], "w") as file:
            json.dump(self.crawler.stats.get_stats(), file, default=str)
'''


@pytest.fixture(autouse=True)
def _no_strays(tmp_path: Path) -> Iterator[None]:
    """A crawl that a test leaves while it runs is killed, and its Redis, too."""
    with no_strays_below(tmp_path):
        yield


@pytest.fixture
def web(tmp_path: Path) -> Iterator[SimulatedWeb]:
    """A small web with redirects, robots rules and missing pages."""
    with SimulatedWeb(tmp_path / "web", hosts=6, pages=12) as served:
        yield served


def settings_of(**more: object) -> dict[str, object]:
    return {
        "BIGCRAWL_METRICS": 1,
        "BIGCRAWL_METRICS_PORT": 0,
        "BIGCRAWL_HOST_DELAY": 0.05,
        "BIGCRAWL_PARTITIONS": 8,
        "BIGCRAWL_CLOSE": "forever",
        **more,
    }


def port_of(crawl: Crawl) -> int:
    """Where a crawl that was started listens."""
    wait_until(lambda: LISTENS.search(crawl.log.read_text()) is not None, "the metrics are served")
    found = LISTENS.search(crawl.log.read_text())
    assert found is not None
    return int(found[1])


def is_closed(connection: socket.socket) -> bool:
    """Whether the server closes it, which ends the wait."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def scrape(port: int, path: str = "/metrics") -> tuple[int, str]:
    """Status and text of one scrape."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path, headers={"Accept": OPENMETRICS})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


class MailBox(socketserver.StreamRequestHandler):
    """As much of an SMTP server as a mailer needs."""

    received: ClassVar[list[str]] = []

    def handle(self) -> None:
        self.wfile.write(b"220 mail\r\n")
        while line := self.rfile.readline():
            verb = line[:4].upper().strip()
            if verb == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                self.received.append(b"".join(iter(self.rfile.readline, b".\r\n")).decode())
            self.wfile.write(b"221 bye\r\n" if verb == b"QUIT" else b"250 mail\r\n")


class Samples:
    """The samples of a scrape, by name and the values of labels."""

    def __init__(self, text: str) -> None:
        self.by_key: dict[tuple[str, ...], float] = {}
        self.families = list(text_string_to_metric_families(text))
        for family in self.families:
            for sample in family.samples:
                labels = [value for name, value in sorted(sample.labels.items()) if name != "crawl"]
                assert sample.labels["crawl"] == "test"
                self.by_key[(sample.name, *labels)] = sample.value

    def __call__(self, name: str, *labels: str) -> float:
        return self.by_key[(name, *labels)]

    def sum(self, name: str) -> float:
        return sum(value for key, value in self.by_key.items() if key[0] == name)


def is_done(port: int) -> bool:
    """Whether nothing is left to fetch, by the metrics themselves.

    They look at one partition after the other, so a link may be in none of those that one look has seen. It is found by
    the next.
    """
    before = figures_of_nothing_left(port)
    if before is None:
        return False
    for _ in range(2):  # the first of these looks may have begun before
        looked = partial(looked_since, port, time.monotonic())
        wait_until(looked, "the node looks at its partitions again")
    return figures_of_nothing_left(port) == before


def figures_of_nothing_left(port: int) -> tuple[float, float] | None:
    """How many URLs were seen and have ended, if the last look has found none in any place."""
    seen = Samples(scrape(port)[1])
    places = sum(seen("bigcrawl_owned_urls", place) for place in ("inbox", "front", "parked", "back", "taken"))
    urls = seen("bigcrawl_owned_seen_urls")
    if not urls or places or seen.sum("bigcrawl_held_urls"):
        return None
    return urls, seen("bigcrawl_owned_ended_urls")


def looked_since(port: int, at_s: float) -> bool:
    """Whether the last look ended after this time."""
    age_s = Samples(scrape(port)[1])("bigcrawl_owned_age_seconds")
    return time.monotonic() - age_s > at_s


@pytest.mark.long("a crawl of its own; what is counted: tests/unit/metrics")
def test_metrics_agree_with_the_origins_log_and_scrapys_stats(web: SimulatedWeb, tmp_path: Path) -> None:
    """Pages by status, robots.txt fetches, URLs seen and ended, histograms: as the origin and Redis have counted.

    Every metric of the table is shown and no other, with its kind and help, and with label values of its own list only:
    the number of series is known beforehand. A handler of spider_closed and StatsMailer read the same numbers, and the
    port is closed at the end.
    """
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "handlers.py").write_text(EXTENSION)
    stats = tmp_path / "stats.json"
    extensions = {"handlers.Handler": 500, "scrapy.extensions.statsmailer.StatsMailer": 500}
    environment = {"PYTHONPATH": str(tmp_path / "project"), "STATS_FILE": str(stats)}
    with at_work(socketserver.ThreadingTCPServer(("127.0.0.1", 0), MailBox)) as mail:
        more = settings_of(
            EXTENSIONS=json.dumps(extensions),
            STATSMAILER_RCPTS="crawl@bigcrawl.test",
            MAIL_HOST="127.0.0.1",
            MAIL_PORT=mail.server_address[1],
        )
        with Crawl(tmp_path / "crawl", web.seeds, more, environment=environment) as crawl:
            crawl.start()
            port = port_of(crawl)
            wait_until(lambda: is_done(port), "the crawl has nothing left to fetch")
            time.sleep(KEPT_S)  # the same text is given until then
            text = scrape(port)[1]
            assert scrape(port, "/")[0] == 404
            kept = http.client.HTTPConnection("127.0.0.1", port, timeout=60)  # as Prometheus keeps it
            kept.request("GET", "/metrics")
            kept.getresponse().read()
            status = crawl.status()
            crawl.terminate()
            assert crawl.wait(300) == 0
            with pytest.raises(ConnectionRefusedError):
                scrape(port)
            kept.close()
    seen = Samples(text)
    families = {family.name: family for family in seen.families}
    assert families.keys() == {metric.name for metric in METRICS}
    for metric in METRICS:
        family = families[metric.name]
        assert (family.type, family.documentation) == (metric.kind, metric.help)
        values = {sample.labels[metric.label] for sample in family.samples if metric.label}
        assert not metric.values or values <= set(metric.values), metric.name
    exchanges = web.exchanges()
    pages = Counter(f"{each.status // 100}xx" for each in exchanges if not each.is_robots)
    assert pages, "the crawl fetched something"
    tries = {name: seen("bigcrawl_pages_total", name) + seen("bigcrawl_retries_total", name) for name in pages}
    assert tries == dict(pages)
    assert seen.sum("bigcrawl_pages_total") == status["pages"]
    assert seen("bigcrawl_retries_total", "5xx") > 0, "the web has a page that fails"
    assert seen("bigcrawl_robots_fetches_total") == sum(each.is_robots for each in exchanges)
    assert seen("bigcrawl_fetch_seconds_count") == sum(pages.values())
    assert seen("bigcrawl_start_delay_seconds_count") == sum(pages.values())
    assert seen("bigcrawl_robots_seconds_count") == seen("bigcrawl_robots_fetches_total")
    assert seen("bigcrawl_body_bytes_total") == seen("bigcrawl_owned_body_bytes") == status["bytes"]
    assert seen("bigcrawl_owned_seen_urls") == status["urls"]["seen"]
    assert seen("bigcrawl_owned_ended_urls") == status["urls"]["ended"]
    forbidden = status["outcomes"].get("dropped:forbidden", 0)
    assert 0 <= seen("bigcrawl_dropped_urls_total", "forbidden") <= forbidden
    assert seen("bigcrawl_owned_partitions") == seen("bigcrawl_partitions") == 8
    assert seen("bigcrawl_step_seconds_count") > 0
    assert seen("bigcrawl_redis_round_trips_total") > 0
    assert seen("bigcrawl_disk_free_bytes", "state") > 0
    assert seen("bigcrawl_lease_valid") == 1
    found = json.loads(stats.read_text())
    for key in ("bigcrawl/links/found", "bigcrawl/warc/records"):
        assert seen(f"{key.replace('/', '_')}_total") == found[key] > 0
        assert re.search(rf"^{key} +: {found[key]}\r$", MailBox.received[-1], re.MULTILINE)


def test_secrets_are_nowhere(web: SimulatedWeb, tmp_path: Path) -> None:
    """The passwords of Redis and a proxy and a cookie are in neither metrics nor log, and only loopback is served."""
    with PrivateRedis() as server:
        server.client.config_set("requirepass", SECRETS["redis"])
        url = server.url.replace("unix://", f"unix://:{SECRETS['redis']}@")
        more = settings_of(BIGCRAWL_REDIS_URL=url)
        more["DEFAULT_REQUEST_HEADERS"] = json.dumps({"Cookie": f"session={SECRETS['cookie']}"})
        more["BIGCRAWL_NODE"] = "n1"
        environment = {"https_proxy": f"http://user:{SECRETS['proxy']}@127.0.0.1:9"}
        with Crawl(tmp_path / "crawl", web.seeds, more, environment=environment) as crawl:
            crawl.start()
            port = port_of(crawl)
            wait_until(lambda: is_done(port), "the crawl has nothing left to fetch")
            assert crawl.process is not None
            assert listening(crawl.process.pid) == {f"0100007F:{port:04X}"}, "127.0.0.1, and no other"
            texts = [scrape(port)[1], scrape(port, "/metrics?debug=1")[1], scrape(port, "/else")[1]]
            crawl.terminate()
            assert crawl.wait(300) == 0
            texts.append(crawl.log.read_text())
    assert not [secret for secret in SECRETS.values() if secret in "".join(texts)]
    assert "GET /metrics" not in texts[-1], "scrapes are not logged"


@pytest.mark.long("a screen while Redis is away, which shows the same figures: test_top.py")
def test_metrics_are_served_while_redis_is_away(web: SimulatedWeb, tmp_path: Path) -> None:
    """At once, with the age of what the node last heard; that is young again when Redis is back.

    Also to somebody who comes after one who keeps more connections than there may be.
    """

    def age_s(port: int) -> float:
        status, text = scrape(port)
        assert status == 200
        return Samples(text)("bigcrawl_owned_age_seconds")

    with PrivateRedis() as server, Crawl(tmp_path / "crawl", web.seeds, settings_of()) as crawl:
        crawl.settings["BIGCRAWL_REDIS_URL"] = server.url
        crawl.start()
        port = port_of(crawl)
        wait_until(lambda: is_done(port), "the crawl has nothing left to fetch")
        seen = Samples(scrape(port)[1])("bigcrawl_owned_seen_urls")
        server.kill()
        with ExitStack() as held:
            kept = [held.enter_context(socket.create_connection(("127.0.0.1", port), 60)) for _ in range(OVER_MAX)]
            assert scrape(port)[0] == 200
            assert [is_closed(connection) for connection in kept[: OVER_MAX - CONNECTIONS_MAX]] == [True] * 20
        wait_until(lambda: age_s(port) > 10, "the figures grow old")
        assert Samples(scrape(port)[1])("bigcrawl_owned_seen_urls") == seen
        server.restart()
        wait_until(lambda: age_s(port) < 10, "the figures are young again")


@pytest.mark.long("several nodes that find the first port of a range taken")
def test_a_taken_port_is_one_line_and_tried_again(web: SimulatedWeb, tmp_path: Path) -> None:
    """The crawl goes on meanwhile, and its metrics are served once the port is free."""
    taken = socket.socket()
    port = bind_lasting(taken)
    taken.listen()
    with Crawl(tmp_path / "crawl", web.seeds, settings_of(BIGCRAWL_METRICS_PORT=port)) as crawl:
        with taken:
            crawl.start()
            wait_until(lambda: "cannot be used" in crawl.log.read_text(), "the taken port is reported")
            wait_until(lambda: crawl.status()["pages"] > 0, "pages are fetched")
        assert port_of(crawl) == port
        wait_until(lambda: is_done(port), "the crawl has nothing left to fetch")
        log = crawl.log.read_text()
    lines = [line for line in log.splitlines() if "ERROR: " in line]
    assert len(lines) == 1, lines
    assert f"BIGCRAWL_METRICS_PORT {port} at 127.0.0.1 cannot be used" in lines[0]
    assert "Traceback" not in log


def test_several_nodes_of_a_machine_share_a_range_of_ports(web: SimulatedWeb, tmp_path: Path) -> None:
    """The second one takes the next port, and the sum over both is the crawl."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        first = free.getsockname()[1]
    more = settings_of(BIGCRAWL_METRICS_PORT=f"{first}-{min(first + 50, 65_535)}")
    with Crawl(tmp_path / "crawl", web.seeds, more) as crawl:
        crawl.start()
        one = port_of(crawl)
        other = Crawl(tmp_path / "other", web.seeds, {**more, "BIGCRAWL_STATE_DIR": crawl.directory / "state"})
        with other:
            other.start()
            two = port_of(other)
            assert one != two

            def owned() -> float:
                return sum(Samples(scrape(port)[1])("bigcrawl_owned_partitions") for port in (one, two))

            wait_until(lambda: owned() == 8, "both nodes together own all partitions")
            assert Samples(scrape(two)[1])("bigcrawl_partitions") == 8
