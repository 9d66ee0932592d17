"""What counts as a way to reach whoever crawls, and what is nobody's."""

from __future__ import annotations

import pytest

from bigcrawl.config import read_config
from bigcrawl.config.contact import find_contact, find_mail, user_agent_with
from bigcrawl.exceptions import ConfigError

PAGE, MAIL = "https://crawler.uni-somewhere.de/bot", "crawl-team@uni-somewhere.de"


@pytest.mark.parametrize(
    ("agent", "contact"),
    [
        (f"mybot/1.0 (+{PAGE})", PAGE),
        (f"mybot/1.0 (+{PAGE}; {MAIL})", PAGE),
        (f"mybot/1.0 ({MAIL}; +{PAGE})", MAIL),
        (f"Mozilla/5.0 (compatible; mybot/1.0; +{PAGE})", PAGE),
        (f"mybot/1.0 (mailto:{MAIL})", MAIL),
        (f"mybot/1.0 (like Scrapy/2 (+https://scrapy.org), {MAIL})", MAIL),
    ],
)
def test_contact_is_found_wherever_it_stands(agent: str, contact: str) -> None:
    """The first one that may be somebody's."""
    assert find_contact(agent) == contact


@pytest.mark.parametrize(
    "agent",
    [
        "",
        "mybot/1.0",
        "Scrapy/2.19.0 (+https://scrapy.org)",
        "shop (+http://www.yourdomain.com)",
        "mybot/1.0 (+https://example.org/bot)",
        "mybot/1.0 (+https://bot.example/)",
        "mybot/1.0 (me@example.com)",
        "mybot/1.0 (me@localhost; http://localhost:8000/)",
        "mybot/1.0 (+HTTPS://WWW.EXAMPLE.COM:443/)",
        "mybot/1.0 (+http://me@example.com/)",
        "mybot/1.0 (+https://)",
        "mybot/1.0 (+ftp://uni-somewhere.de/)",
    ],
)
def test_placeholder_is_nobodys(agent: str) -> None:
    """Also Scrapy's own page: it is not Scrapy's people who crawl."""
    assert find_contact(agent) == ""
    assert read_config({"USER_AGENT": agent}).politeness.contact == ""


@pytest.mark.parametrize("contact", ["me", "https://example.org/bot", f"call {MAIL}", "me@example.com", "//a.b/"])
def test_contact_that_is_none_stops_the_start(contact: str) -> None:
    """Rather now than at the first public address."""
    with pytest.raises(ConfigError, match=r"BIGCRAWL_CONTACT is .* must be your web page or mail address"):
        read_config({"BIGCRAWL_CONTACT": contact})


def test_setting_comes_before_the_user_agent() -> None:
    """And a mail address is taken from wherever there is one."""
    who = read_config({"BIGCRAWL_CONTACT": PAGE, "USER_AGENT": f"mybot ({MAIL})"}).politeness
    assert (who.contact, who.mail) == (PAGE, MAIL)
    assert read_config({"BIGCRAWL_CONTACT": MAIL}).politeness.mail == MAIL
    assert find_mail(PAGE, "me@example.com") == ""


def test_user_agent_tells_the_contact() -> None:
    """Once; and Scrapy's default, which names Scrapy's page, gives way."""
    assert user_agent_with("mybot/1.0", PAGE, "bigcrawl/0") == f"mybot/1.0 (+{PAGE})"
    assert user_agent_with(f"mybot/1.0 (+{PAGE})", PAGE, "bigcrawl/0") == f"mybot/1.0 (+{PAGE})"
    assert user_agent_with("Scrapy/2.19 (+https://scrapy.org)", PAGE, "bigcrawl/0") == f"bigcrawl/0 (+{PAGE})"
    assert user_agent_with("mybot/1.0", "", "bigcrawl/0") == "mybot/1.0"
