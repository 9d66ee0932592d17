"""rediss:// on a Debian Redis that speaks TLS and nothing else: a whole crawl, and each certificate that does not fit.

The server that bigcrawl embeds is built without TLS, so this is a system check.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.redis_servers.redis_cluster import free_ports
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import no_strays_below
from tests.support.servers.certificates import Authority

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

ADDRESS = "127.78.0.1"  # of its own: on 127.0.0.1 some client may take the port before the server does
DELAY_MS = 50
SETTINGS = {"BIGCRAWL_HOST_DELAY": DELAY_MS / 1000, "BIGCRAWL_PARTITIONS": 8}
DAY_S = 86_400


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedWeb]:
    with SimulatedWeb(tmp_path_factory.mktemp("web"), hosts=8, pages=10) as one:
        yield one


class TlsRedis(PrivateRedis):
    """A server on a port where it speaks TLS, to clients with a certificate of its authority alone."""

    def __init__(self, authority: Authority, certificate: Path) -> None:
        [self.port] = free_ports(1)
        options = {
            "bind": ADDRESS,
            "tls-port": str(self.port),
            "tls-cert-file": str(certificate),
            "tls-key-file": str(certificate),
            "tls-ca-cert-file": str(authority.file),
            "tls-auth-clients": "yes",
        }
        server = shutil.which("redis-server")
        assert server is not None, "run: make system"
        super().__init__(options=options, server=Path(server))

    def url_with(self, *, trusted: Authority, client: Path | None) -> str:
        """The URL of a client that trusts one authority and has a certificate, or none."""
        own = f"&ssl_certfile={client}&ssl_keyfile={client}" if client else ""
        return f"rediss://{ADDRESS}:{self.port}/0?ssl_ca_certs={trusted.file}{own}"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


def test_crawl_over_tls_fetches_each_page_once(web: SimulatedWeb, tmp_path: Path, authority: Authority) -> None:
    served = authority.certificate("server", address=ADDRESS)
    with no_strays_below(tmp_path), TlsRedis(authority, served) as server:
        url = server.url_with(trusted=authority, client=authority.certificate("client"))
        with Crawl(tmp_path / "crawl", web.seeds, {**SETTINGS, "BIGCRAWL_REDIS_URL": url}) as crawl:
            assert crawl.run(300) == 0
            assert "Spider closed (finished)" in crawl.log.read_text()
            assert "Traceback" not in crawl.log.read_text()
        assert server.client.keys("bigcrawl:{test}:*")
    report = web.report(delay_ms=DELAY_MS)
    assert not report.kinds, str(report)


FAULTS = {
    "a server of another authority": "ssl_ca_certs=<file>",
    "a server whose certificate has expired": "certificate has expired",
    "a server with another name": "IP address mismatch",
    "no client certificate": "ssl_certfile=<file>",
    "a client certificate of another authority": "authority of the client certificate",
    "a client certificate that has expired": "the client certificate in ssl_certfile has expired",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_certificate_that_does_not_fit_ends_the_start_with_one_line(
    web: SimulatedWeb, tmp_path: Path, authority: Authority, fault: str
) -> None:
    """It is not waited for, as a Redis that is away would be, for a day."""
    other = Authority(tmp_path / "other")
    trusted, served = authority, authority.certificate("server", address=ADDRESS)
    client: Path | None = authority.certificate("client")
    match fault:
        case "a server of another authority":
            trusted = other
        case "a server whose certificate has expired":
            served = authority.certificate("old", days=-1, address=ADDRESS)
        case "a server with another name":
            served = authority.certificate("elsewhere", address="127.0.0.9")
        case "no client certificate":
            client = None
        case "a client certificate of another authority":
            client = other.certificate("client")
        case "a client certificate that has expired":
            client = authority.certificate("old", days=-1)
    with no_strays_below(tmp_path), TlsRedis(authority, served) as server:
        url = server.url_with(trusted=trusted, client=client)
        settings = {**SETTINGS, "BIGCRAWL_REDIS_URL": url, "BIGCRAWL_START_WAIT": DAY_S}
        with Crawl(tmp_path / "crawl", web.seeds, settings) as crawl:
            assert crawl.run(300) == 1
            log = crawl.log.read_text()
    assert "Spider closed (bigcrawl_cannot_start)" in log
    assert "cannot start yet" not in log
    [error] = [line for line in log.splitlines() if " ERROR: " in line]
    assert FAULTS[fault] in error
