"""What was stored is what is answered, over HTTP and through a proxy, and nothing else is."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.stored.answers import StoredAnswers
from bigcrawl_simweb.__main__ import main
from bigcrawl_simweb.serve.running import made_up_context
from bigcrawl_simweb.serve.stored_web import StoredWeb
from tests.annexes.simweb.conftest import Served
from tests.annexes.simweb.scripted import TIMEOUT_S
from tests.unit.stored.warc_files import page, stored

if TYPE_CHECKING:
    from pathlib import Path

Serve = Callable[..., Served]
A, B, SAFE = "http://a.example/", "http://b.example:8080/x?y", "https://a.example/"
LONG = b"<p>long</p>" * 100


def web_of(*paths: Path, pace: float = 1.0) -> StoredWeb:
    return StoredWeb(StoredAnswers([str(path) for path in paths]), pace)


def test_last_answer_is_given_with_its_status_headers_and_time(tmp_path: Path):
    """Headers of the connection and the framing are not: another connection sends the body."""
    headers = [
        (b"Content-Type", b"text/plain"), (b"Date", b"then"), (b"Server", b"it"), (b"Set-Cookie", b"a"),
        (b"Set-Cookie", b"b"), (b"Transfer-Encoding", b"chunked"), (b"Connection", b"close"), (b"X-Odd", b"\xe9"),
    ]  # fmt: skip
    notes = {"fetchTimeMs": "400"}
    path = stored(tmp_path, page(A, b"old"), page(A, b"new", 1, status=410, response_headers=headers, notes=notes))
    answer = web_of(path, pace=0.5).answer("a.example", "/", 80)
    assert (answer.status, answer.body, answer.delay_ms, answer.has_own_head) == (410, b"new", 200, True)
    assert dict(answer.headers) == {
        "Content-Type": "text/plain", "Date": "then", "Server": "it", "Set-Cookie": "b", "X-Odd": "\xe9"
    }  # fmt: skip
    assert [value for name, value in answer.headers if name == "Set-Cookie"] == ["a", "b"]


def test_copies_have_the_body_of_their_original_and_forms_answer_no_get(tmp_path: Path):
    """Of a URL with answers to GET and POST, the last one to GET is given; with answers to POST alone, none."""
    path = stored(tmp_path, page(A, LONG), page(SAFE, LONG, 1), page(A, b"form", 2, method="POST"), refers=True)
    other = stored(tmp_path / "other", page(B, b"form", method="POST"))
    web = web_of(path, other)
    assert web.answer("a.example", "/", 443).body == LONG
    assert web.answer("a.example", "/", 80).body == LONG
    assert web.answer("b.example", "/x?y", 8080).status == 404


@pytest.mark.parametrize(
    ("host", "target", "port", "status"),
    [
        ("a.example", "/nowhere", 80, 404), ("a.example", "/", 81, 404), ("c.example", "/", 80, 421),
        ("a.example", "*", 80, 404), ("b.example", "/x?y", 8080, 200), ("a.example", "/", 443, 200),
    ],
)  # fmt: skip
def test_what_is_not_stored_is_not_there(tmp_path: Path, host: str, target: str, port: int, status: int):
    """Neither another port nor another host; both schemes share no port."""
    answer = web_of(stored(tmp_path, page(A), page(B), page(SAFE))).answer(host, target, port)
    assert (answer.status, ("X-Simweb", "not-stored") in answer.headers) == (status, status != 200)


@pytest.mark.parametrize(
    ("conditions", "status"),
    [
        ({"If-None-Match": 'W/"1"'}, 304), ({"If-None-Match": '"2", "1"'}, 304), ({"If-None-Match": '"2"'}, 200),
        ({"If-None-Match": '"2"', "If-Modified-Since": "now"}, 200), ({"If-Modified-Since": "now"}, 304),
        ({"If-Modified-Since": "then"}, 200), ({}, 200),
    ],
)  # fmt: skip
def test_who_has_the_answer_hears_so(tmp_path: Path, conditions: dict[str, str], status: int):
    """By the validators that were stored."""
    path = stored(tmp_path, page(A, response_headers=[(b"Etag", b'"1"'), (b"Last-Modified", b"now")]))
    answer = web_of(path).answer("a.example", "/", 80, conditions=conditions)
    assert (answer.status, bool(answer.body)) == (status, status == 200)


def test_hosts_of_a_server_share_an_address_and_simulated_ones_keep_theirs(tmp_path: Path):
    """The same in each process; a host whose server is unknown has an address of its own."""
    servers = {"a.example": "192.0.2.1", "b.example": "192.0.2.1", "c.example": "192.0.2.2", "d.example": None}
    pages = [page(f"http://{host}/", ip=server) for host, server in servers.items()]
    path = stored(tmp_path, *pages, page("http://127.16.0.9/", ip="127.16.0.9"))
    web, again = web_of(path), web_of(path)
    a, b, c, d = map(web.address_of, servers)
    assert a == b == again.address_of("a.example")
    assert len({a, c, d}) == 3
    assert web.address_of("127.16.0.9") == "127.16.0.9"
    assert web.address_of("e.example") is None
    assert set(web.addresses()) == {a, c, d, "127.16.0.9"}


def test_proxy_serves_both_schemes(serve: Serve, tmp_path: Path):
    """A tunnel is for one host, by TLS; several requests come through it; another host has none."""
    web = web_of(stored(tmp_path, page(A, b"plain"), page(SAFE, LONG)))
    served, address = serve(web, tls=made_up_context()), web.address_of("a.example")
    assert address
    for target, body in ((A, b"plain"), ("/", LONG)):
        if target == A:
            client = http.client.HTTPConnection(address, served.port, timeout=TIMEOUT_S)
        else:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            client = http.client.HTTPSConnection(address, served.port, timeout=TIMEOUT_S, context=context)
            client.set_tunnel("a.example")
        for _ in range(2):
            client.request("GET", target)
            assert client.getresponse().read() == body
        client.close()
    client = http.client.HTTPConnection(address, served.port, timeout=TIMEOUT_S)
    client.request("CONNECT", "c.example:443")
    assert client.getresponse().status == 405
    client.close()
    assert [(line.host, line.status) for line in served.stopped_log()][:4] == [("a.example", 200)] * 4


def test_damaged_records_are_told_with_file_and_byte(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """They cost themselves alone: at the start without an index, else when they are asked for."""
    path = stored(tmp_path, page(A, LONG), page(B, LONG), is_indexed=False)
    data = bytearray(path.read_bytes())
    at = data.index(b"\x1f\x8b\x08", 10)
    data[at + 20 : at + 30] = bytes(10)
    path.write_bytes(data)
    assert web_of(path).answer("b.example", "/x?y", 8080).status == 200
    assert f"{path}: damaged at byte {at}" in caplog.text

    whole = stored(tmp_path / "indexed", page(A), page(B))
    whole.write_bytes(whole.read_bytes()[:-600])
    web = web_of(whole)
    while web.answer("b.example", "/x?y", 8080).status == 200:
        whole.write_bytes(whole.read_bytes()[:-100])
    assert web.answer("b.example", "/x?y", 8080).headers[-1] == ("X-Simweb", "unreadable")
    assert f"{whole}: the record at byte " in caplog.text
    assert "scrapy frontier warc verify" in caplog.text
    assert web.answer("a.example", "/", 80).status == 200


def test_files_that_are_none_are_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """And options of a generated web do not go with stored files."""
    other = tmp_path / "a.warc.gz"
    other.write_bytes(b"no records")
    empty = tmp_path / "empty.warc"
    empty.write_bytes(b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\n\r\n\r\n")
    with pytest.raises(ConfigError, match="is not a WARC or ARC file"):
        web_of(other)
    for options, message in (
        (["--warc", str(tmp_path / "b*")], "--warc is "),
        (["--warc", str(other), "--hosts", "3"], "--hosts does not apply to the stored pages of --warc"),
        (["--warc", str(other), "--pace", "-1"], "--pace is -1.0; must be at least 0"),
        (["--warc", str(empty)], "there is no answer of a URL in the files"),
        (["--pace", "2"], "--pace is 2.0, but it needs --warc"),
    ):
        assert main(["serve", *options]) == 2
        assert message in capsys.readouterr().err
