"""Metrics, rules and dashboard with a real Prometheus, which scrapes a live crawl. Debian's package `prometheus`."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.watching.test_metrics import is_done, port_of, settings_of
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.running.ports import bind_lasting
from tests.support.running.processes import no_strays_below, spawn, wait_until
from tests.unit.metrics.test_ops import RULES, expressions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.system

# Each alert: series that must make it fire, as promtool writes them, and how long after their begin, in minutes.
FIRING = {
    "BigcrawlNodeDown": (['up{job="bigcrawl",instance="n"} 0x99'], 5),
    "BigcrawlNodeDeaf": (['bigcrawl_owned_age_seconds{instance="n"} 0+60x99'], 5),
    "BigcrawlNoLease": (['bigcrawl_lease_valid{instance="n"} 0x99'], 5),
    "BigcrawlPartitionsUnowned": (
        [
            'bigcrawl_owned_partitions{crawl="c",instance="n"} 3x99',
            'bigcrawl_owned_partitions{crawl="c",instance="m"} 4x99',
            'bigcrawl_partitions{crawl="c",instance="n"} 8x99',
        ],
        10,
    ),
    "BigcrawlNothingFetched": (
        ['bigcrawl_pages_total{crawl="c",status="2xx"} 7x99', 'bigcrawl_owned_hosts{crawl="c",state="ready"} 2x99'],
        30,
    ),
    "BigcrawlLate": (
        [
            'bigcrawl_lateness_seconds_bucket{crawl="c",le="32.768"} 0+1x199',
            'bigcrawl_lateness_seconds_bucket{crawl="c",le="131.072"} 0+9x199',
            'bigcrawl_lateness_seconds_bucket{crawl="c",le="+Inf"} 0+9x199',
        ],
        60,
    ),
    "BigcrawlCrowded": (['bigcrawl_crowded{instance="n"} 1x99'], 40),
    "BigcrawlPagesFail": (
        [
            'bigcrawl_page_errors_total{crawl="c",reason="timeout"} 0+9x99',
            'bigcrawl_pages_total{crawl="c",status="2xx"} 0+2x99',
        ],
        40,
    ),
    "BigcrawlDnsFails": (
        [
            'bigcrawl_dns_failures_total{crawl="c",reason="timeout"} 0+8x99',
            'bigcrawl_dns_questions_total{crawl="c"} 0+9x99',
        ],
        40,
    ),
    "BigcrawlDiskFillsUp": (
        ['bigcrawl_disk_free_bytes{instance="n",directory="warc"} 1e11-1e8x999'],
        600,
    ),
    "BigcrawlDiskFull": (['bigcrawl_disk_free_bytes{instance="n",directory="warc"} 1e9x99'], 10),
    "BigcrawlDiskSilent": (
        [
            'bigcrawl_node_info{crawl="c",instance="n",version="1"} 1x99',
            'bigcrawl_disk_free_bytes{crawl="c",instance="n",directory="warc"} 1e12x99',
        ],
        10,
    ),
    "BigcrawlPagesNotStored": (['bigcrawl_warc_write_errors_total{instance="n"} 0+9x99'], 20),
    "BigcrawlPagesNotUploaded": (['bigcrawl_warc_upload_errors_total{instance="n"} 0+1x99'], 60),
    "BigcrawlUrlsLost": (['bigcrawl_owned_lost_urls{crawl="c"} 5x99'], 5),
    "BigcrawlEntriesRejected": (['bigcrawl_owned_rejected_entries{crawl="c"} 5x99'], 10),
    "BigcrawlDeadLetters": (['bigcrawl_owned_dead_urls{crawl="c"} 5x99'], 10),
}

# A crawl that is well, for as long as any of these takes.
WELL = [
    'up{job="bigcrawl",instance="n"} 1x999',
    'bigcrawl_owned_age_seconds{crawl="c",instance="n"} 2x999',
    'bigcrawl_lease_valid{crawl="c",instance="n"} 1x999',
    'bigcrawl_owned_partitions{crawl="c",instance="n"} 8x999',
    'bigcrawl_partitions{crawl="c",instance="n"} 8x999',
    'bigcrawl_pages_total{crawl="c",instance="n",status="2xx"} 0+99x999',
    'bigcrawl_page_errors_total{crawl="c",instance="n",reason="timeout"} 0+9x999',
    'bigcrawl_owned_hosts{crawl="c",instance="n",state="ready"} 2x999',
    'bigcrawl_lateness_seconds_bucket{crawl="c",instance="n",le="0.008"} 0+9x999',
    'bigcrawl_lateness_seconds_bucket{crawl="c",instance="n",le="+Inf"} 0+9x999',
    'bigcrawl_crowded{crawl="c",instance="n"} 0x999',
    'bigcrawl_dns_failures_total{crawl="c",instance="n",reason="timeout"} 0+1x999',
    'bigcrawl_dns_questions_total{crawl="c",instance="n"} 0+9x999',
    'bigcrawl_node_info{crawl="c",instance="n",version="1"} 1x999',
    'bigcrawl_disk_free_bytes{crawl="c",instance="n",directory="state"} 1e12-1e3x999',
    'bigcrawl_warc_write_errors_total{crawl="c",instance="n"} 0x999',
    'bigcrawl_warc_upload_errors_total{crawl="c",instance="n"} 0x999',
    'bigcrawl_owned_lost_urls{crawl="c",instance="n"} 0x999',
    'bigcrawl_owned_rejected_entries{crawl="c",instance="n"} 0x999',
    'bigcrawl_owned_dead_urls{crawl="c",instance="n"} 0x999',
]


def program(name: str) -> str:
    """The path of a program of the package."""
    found = shutil.which(name)
    assert found is not None, f"{name} is missing: scripts/install_system"
    return found


def firing(alerts: Iterable[str], directory: Path, series: list[str], minutes: int) -> set[str]:
    """Which of the alerts fire at a time, given series that begin at 0."""
    asked = [{"eval_time": f"{minutes}m", "alertname": alert, "exp_alerts": []} for alert in alerts]
    made = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [dict(zip(("series", "values"), each.rsplit(" ", 1), strict=True)) for each in series],
                "alert_rule_test": asked,
            }
        ],
    }
    path = directory / "test.yml"
    path.write_text(json.dumps(made))  # JSON is YAML
    done = subprocess.run([program("promtool"), "test", "rules", path], capture_output=True, text=True, check=False)
    fires = set(re.findall(r"alertname: (\w+), time: ", said := done.stdout + done.stderr))
    assert bool(fires) == bool(done.returncode), said
    return fires


def test_rules_are_well_formed() -> None:
    """By Prometheus' own tool."""
    subprocess.run([program("promtool"), "check", "rules", RULES], check=True)


@pytest.mark.parametrize("alert", FIRING)
def test_an_alert_fires_when_it_should(alert: str, tmp_path: Path) -> None:
    """On the series of what it is about."""
    series, minutes = FIRING[alert]
    assert firing([alert], tmp_path, series, minutes) == {alert}


def test_no_alert_fires_when_all_is_well(tmp_path: Path) -> None:
    """After five minutes, an hour and half a day."""
    for minutes in (5, 60, 700):
        assert firing(FIRING, tmp_path, WELL, minutes) == set()


@contextmanager
def prometheus(directory: Path, target: int) -> Iterator[str]:
    """A Prometheus on loopback that scrapes a port every second, with our rules; its address."""
    with socket.socket() as free:
        port = bind_lasting(free)
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "bigcrawl", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}],
    }
    path = directory / "prometheus.yml"
    path.write_text(json.dumps(config))
    with (directory / "prometheus.log").open("wb") as log:
        process = spawn(
            [
                program("prometheus"),
                f"--config.file={path}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            env=dict(os.environ),
            stdout=log,
            stderr=log,
        )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def asked(address: str, query: str) -> list[dict[str, Any]]:
    """The result of a query; none while Prometheus is not up."""
    url = f"{address}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
            return found
    except ConnectionError:
        return []
    except urllib.error.URLError as error:
        if isinstance(error.reason, ConnectionError):
            return []
        raise


def shown(address: str) -> float:
    """Of the expressions of the dashboard, the share that has something to show."""
    queries = [text.replace("$crawl", ".*").replace("$__rate_interval", "1m") for text in expressions()]
    return sum(bool(asked(address, query)) for query in queries) / len(queries)


def test_prometheus_reads_a_live_crawl(tmp_path: Path) -> None:
    """It scrapes the node without an error, knows its metrics, and can evaluate every expression of the dashboard."""
    with (
        no_strays_below(tmp_path),
        SimulatedWeb(tmp_path / "web", hosts=6, pages=12) as web,
        Crawl(tmp_path / "crawl", web.seeds, settings_of()) as crawl,
    ):
        crawl.start()
        port = port_of(crawl)
        with prometheus(tmp_path, port) as address:
            wait_until(lambda: is_done(port), "the crawl has nothing left to fetch")
            pages = crawl.status()["pages"]
            query = 'sum(bigcrawl_pages_total{crawl="test"})'
            wait_until(
                lambda: [row["value"][1] for row in asked(address, query)] == [str(pages)],
                "Prometheus knows all pages",
            )
            # A busy machine may miss a scrape, after which there is nothing until the next; rates take two of them.
            wait_until(
                lambda: [row["value"][1] for row in asked(address, 'up{job="bigcrawl"}')] == ["1"], "the node is up"
            )
            wait_until(lambda: shown(address) > 0.9, "almost all have something to show")
            assert not asked(address, 'ALERTS{alertstate="firing"}')
