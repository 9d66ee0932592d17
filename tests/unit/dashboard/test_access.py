"""Who may ask: by Host, Origin, content type and token."""

from __future__ import annotations

from typing import Any

import pytest

from bigcrawl.config import DashboardConfig
from bigcrawl.dashboard.access import AccessRules, HttpQuestion

TOKEN = "0123456789abcdef"  # noqa: S105 - of this test
HERE = "127.0.0.1:9430"


def config(address: str = "127.0.0.1", token: str | None = TOKEN, origin: str | None = None) -> DashboardConfig:
    return DashboardConfig(True, address, (9430, 9430), token, origin=origin)


def look(host: str = HERE, **more: Any) -> HttpQuestion:
    return HttpQuestion("GET", has_data=True, host=host, **more)


def change(**more: Any) -> HttpQuestion:
    asked = {"origin": f"http://{HERE}", "content_type": "application/json", "authorization": f"Bearer {TOKEN}"}
    return HttpQuestion("POST", **{"has_data": True, "host": HERE, **asked, **more})


def status(asked: HttpQuestion, of: DashboardConfig | None = None) -> int:
    refusal = AccessRules(of or config()).refusal(asked)
    return 200 if refusal is None else refusal.status


@pytest.mark.parametrize("host", ["127.0.0.1", HERE, "localhost:9430", "LOCALHOST", "127.3.2.1:1", "[::1]:9430"])
def test_host_may_be_any_name_of_loopback(host: str) -> None:
    assert status(look(host)) == 200


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "evil.example:9430", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1",
     "user@127.0.0.1", "127.0.0.1/", "127.0.0.1:x", "[::1", "127.0.0.1 evil.example"],
)  # fmt: skip
def test_a_name_that_dns_could_point_here_is_refused(host: str) -> None:
    """Also for the page itself, and with the token."""
    assert status(look(host, authorization=f"Bearer {TOKEN}")) == 403
    assert status(HttpQuestion("GET", has_data=False, host=host)) == 403


def test_host_may_be_the_address_that_is_listened_at() -> None:
    authorization = f"Bearer {TOKEN}"
    assert status(look("10.0.0.1:9430", authorization=authorization), config("10.0.0.1")) == 200
    assert status(look("10.0.0.2:9430", authorization=authorization), config("10.0.0.1")) == 403
    assert status(look("10.0.0.2:9430", authorization=authorization), config("0.0.0.0")) == 200
    assert status(look("node.example", authorization=authorization), config("0.0.0.0")) == 403


def test_looking_needs_the_token_unless_only_this_machine_can() -> None:
    """The page itself holds nothing of the crawl, and a browser cannot send the token with its first request."""
    for of in (config("10.0.0.1"), config(origin="https://crawl.example")):
        assert status(look(), of) == 401
        assert status(look(authorization="Bearer wrong"), of) == 401
        assert status(look(authorization=f"bearer {TOKEN}"), of) == 200
        assert status(HttpQuestion("GET", has_data=False, host=HERE), of) == 200
    assert status(look()) == 200


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer ä"],
)  # fmt: skip
def test_a_change_needs_the_token(authorization: str) -> None:
    assert status(change(authorization=authorization)) == 401


def test_a_change_is_json_of_the_page_itself() -> None:
    assert status(change()) == 200
    assert status(change(content_type="application/json; charset=utf-8")) == 200
    for content_type in ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert status(change(content_type=content_type)) == 415
    for origin in ("", "null", "http://evil.example", "https://127.0.0.1:9430", "http://127.0.0.1:9431", "None"):
        assert status(change(origin=origin)) == 403
    assert status(change(fetch_site="cross-site")) == 403


def test_without_a_token_nothing_can_be_changed() -> None:
    for authorization in ("", "Bearer ", "Bearer None"):
        assert status(change(authorization=authorization), config(token=None)) == 403


def test_another_sites_page_may_not_look() -> None:
    assert [status(look(fetch_site=site)) for site in ("cross-site", "same-site", "same-origin", "none", "")] == [
        *(403, 403),
        *(200, 200, 200),
    ]


def test_a_reverse_proxys_name_is_host_and_origin() -> None:
    of = config(origin="https://crawl.example")
    assert status(change(host="crawl.example", origin="https://crawl.example"), of) == 200
    assert status(change(host=HERE, origin="https://crawl.example"), of) == 200
    assert status(change(host=HERE, origin="https://other.example"), of) == 403


def test_no_text_shows_the_token() -> None:
    """Neither a refusal nor the repr of the settings."""
    found = [
        AccessRules(config()).refusal(change(authorization="Bearer x")),
        AccessRules(config()).refusal(look("a.example")),
    ]
    assert TOKEN not in f"{found} {config()}"
