"""Which host a request is for: by the address of the connection, by name, or through a proxy."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable

import pytest

from bigcrawl_simweb.basics.answer import Answer
from bigcrawl_simweb.basics.name_record import NameFault
from bigcrawl_simweb.serve.access_log import read_exchanges
from tests.annexes.simweb.conftest import Served
from tests.annexes.simweb.scripted import TIMEOUT_S, A, B, ScriptedWeb, hear, request

Serve = Callable[..., Served]
OK = Answer(200, (), b"fine")


@pytest.mark.parametrize("written", ["www.sim.example", "WWW.Sim.Example", "www.sim.example.", "www.sim.example:81"])
def test_name_in_the_host_header_says_which_host(serve: Serve, written: str):
    """A name that leads to the address of the connection is the host; its server is that address."""
    web = ScriptedWeb({"/": OK}, {"www.sim.example": A})
    served = serve(web)
    hear(served.port, request("/", Host=written, Connection="close"))
    (line,) = served.stopped_log()
    assert (line.host, line.server) == ("www.sim.example", A)
    assert [asked[:3] for asked in web.asked] == [("www.sim.example", "/", served.port)]
    (exchange,) = read_exchanges(served.log)
    assert (exchange.host, exchange.server) == ("www.sim.example", A)


@pytest.mark.parametrize(
    "written", ["", "other.example", "elsewhere.example", "mute.example", B, "10.0.0.1", "[::1]:80"]
)
def test_address_says_which_host_when_no_name_of_its_own_is_given(serve: Serve, written: str):
    """A Host header that is no name, no name of the web, or that of another address does not count."""
    web = ScriptedWeb({"/": OK}, {"elsewhere.example": B, "mute.example": NameFault.SILENT})
    served = serve(web)
    hear(served.port, request("/", Host=written, Connection="close"))
    (line,) = served.stopped_log()
    assert (line.host, line.server) == (A, A)


@pytest.mark.parametrize(
    ("target", "host", "server", "port"),
    [
        ("http://www.sim.example/x?y", "www.sim.example", B, 80),
        ("HTTP://WWW.sim.example:8080/x?y", "www.sim.example", B, 8080),
        (f"http://{B}:81/x?y", B, B, 81),
    ],
)
def test_server_is_a_proxy_for_its_hosts(serve: Serve, target: str, host: str, server: str, port: int):
    """A target in absolute form says which host, on any address; links get its port, and Host does not count."""
    web = ScriptedWeb({"/x?y": OK}, {"www.sim.example": B})
    served = serve(web)
    assert hear(served.port, request(target, Host=A, Connection="close")).body == b"fine"
    (line,) = served.stopped_log()
    assert (line.host, line.server, line.target) == (host, server, "/x?y")
    assert [asked[:3] for asked in web.asked] == [(host, "/x?y", port)]


def test_clients_use_it_as_they_use_any_proxy(serve: Serve):
    """The standard library's client fetches by name through it, and knows nothing of addresses."""
    served = serve(ScriptedWeb({"/x?y": OK}, {"www.sim.example": B}))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": f"http://{A}:{served.port}"}))
    with opener.open("http://www.sim.example/x?y", timeout=TIMEOUT_S) as answer:
        assert answer.read() == b"fine"
    (line,) = served.stopped_log()
    assert (line.host, line.server, line.target) == ("www.sim.example", B, "/x?y")


def test_proxy_knows_no_hosts_but_its_own(serve: Serve):
    """A host outside the web is misdirected, and the web is not asked; nor is anything fetched for anybody."""
    web = ScriptedWeb({"/": OK}, {"mute.example": NameFault.SILENT})
    served = serve(web)
    targets = ["http://other.example/", "http://mute.example/", "http://10.0.0.1/", "https://sim.example/"]
    heads = [hear(served.port, request(target, Connection="close")).head for target in targets]
    assert [head.split()[1] for head in heads] == ["421"] * 4
    assert not web.asked
    lines = served.stopped_log()
    hosts = ["other.example", "mute.example", "10.0.0.1", A]
    assert [(line.host, line.server, line.status) for line in lines] == [
        (host, A if host == A else "-", 421) for host in hosts
    ]
