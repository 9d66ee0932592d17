from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.exceptions import ConfigError, CorruptionError
from bigcrawl.politeness.robots_policy import (
    BODY_BYTES_MAX,
    KEPT_MS,
    RobotsRules,
    agent_token,
    robots_url,
    verdict_on_response,
)
from tests.support.running.tables import each

SITE = "http://site.example"
HOUR_MS = 3_600_000


def allows(robots: str | bytes, path: str, agent: str = "bigcrawl") -> bool:
    """Tell whether a robots.txt lets us fetch a path, also after a trip through the host record."""
    rules = RobotsRules.parse(robots.encode() if isinstance(robots, str) else robots, agent)
    answer = rules.is_allowed(SITE + path)
    assert RobotsRules.from_bytes(rules.to_bytes()).is_allowed(SITE + path) == answer
    return answer


def test_rules_are_asked_for_at_the_authority() -> None:
    """Scheme, host and port have their own robots.txt, at the root."""
    assert robots_url("http://site.example:8080") == "http://site.example:8080/robots.txt"


@pytest.mark.parametrize(
    ("user_agent", "token"),
    [
        ("bigcrawl/0.1 (+http://example.com)", "bigcrawl"),
        ("BigCrawl", "bigcrawl"),
        ("Scrapy/2.19.0 (+https://scrapy.org)", "scrapy"),
        ("Mozilla/5.0 (compatible; Example-Bot/1.0; +http://example.com)", "example-bot"),
        ("Mozilla/5.0 (X11; Linux x86_64)", "mozilla"),
        ("my_bot2 test", "my_bot2"),
    ],
)
def test_product_token_is_read_from_the_user_agent(user_agent: str, token: str) -> None:
    """The name before the version; in a browser's form the name after `compatible`."""
    assert agent_token(user_agent) == token


def test_a_user_agent_without_a_name_is_a_config_error() -> None:
    """Nobody could write rules for it."""
    with pytest.raises(ConfigError, match="USER_AGENT"):
        agent_token(" (+)/ ")


@pytest.mark.parametrize("line", ["bigcrawl", "BIGCRAWL", "bigcrawl/1.0", "bigcrawl (all versions)", "Bigcrawl*"])
def test_the_group_that_names_us_is_ours(line: str) -> None:
    """Whatever case, version or remark follows (RFC 9309 §2.2.1), and wherever the group stands."""
    for robots in (
        f"User-agent: {line}\nDisallow: /a\nUser-agent: *\nDisallow: /b",
        f"User-agent: *\nDisallow: /b\n\nUser-agent: {line}\nDisallow: /a",
    ):
        assert not allows(robots, "/a")
        assert allows(robots, "/b")


@pytest.mark.parametrize(
    "line", ["big", "bigcrawler", "bigcrawl-images", "bigcrawl2", "my-bigcrawl", "crawl", "", "/1.0"]
)
def test_groups_for_other_names_are_not_ours(line: str) -> None:
    """Part of our token, or our token and more, names somebody else; then the group for all applies."""
    robots = f"User-agent: {line}\nDisallow: /a\n\nUser-agent: *\nDisallow: /b"
    assert allows(robots, "/a")
    assert not allows(robots, "/b")


def test_a_long_token_is_not_addressed_by_its_beginning() -> None:
    """`bigcrawl` is not `bigcrawl-images`, in either direction."""
    robots = "User-agent: bigcrawl\nDisallow: /a\nUser-agent: bigcrawl-images\nDisallow: /b"
    assert allows(robots, "/a", "bigcrawl-images")
    assert not allows(robots, "/b", "bigcrawl-images")


def test_several_groups_that_name_us_are_one() -> None:
    """Rules of all groups with our token, or all for `*`, are merged (§2.2.1)."""
    for name in ("bigcrawl", "*"):
        robots = f"User-agent: {name}\nDisallow: /a\nUser-agent: x\nDisallow: /c\nUser-agent: {name}\nDisallow: /b"
        assert [allows(robots, path) for path in ("/a", "/b", "/c")] == [False, False, True]


def test_a_group_may_name_many() -> None:
    """User-agent lines in a row share the rules that follow."""
    robots = "User-agent: x\nUser-agent: bigcrawl\n\n# note\nUser-agent: y\nDisallow: /a\n"
    robots += "User-agent: *\nDisallow: /"
    assert [allows(robots, path) for path in ("/a", "/b")] == [False, True]


@pytest.mark.parametrize("rule", ["", "Disallow:", "Disallow: # nothing", "Allow: /"])
def test_our_own_group_without_rules_allows_everything(rule: str) -> None:
    """It still stands in for the group for all."""
    robots = f"User-agent: *\nDisallow: /\n\nUser-agent: bigcrawl\n{rule}\n"
    assert allows(robots, "/a")


@pytest.mark.parametrize("other", ["Sitemap: http://site.example/s.xml", "Crawl-delay: 9", "Unknown: x", "Host: a"])
def test_other_records_do_not_end_a_list_of_user_agents(other: str) -> None:
    """They must not interfere with what the RFC defines (§2.2.4)."""
    robots = f"User-agent: bigcrawl\n{other}\nUser-agent: x\nDisallow: /a"
    assert not allows(robots, "/a")


def test_an_empty_disallow_ends_a_list_of_user_agents() -> None:
    """It is a rule: what follows the next User-agent line is for that one alone."""
    assert allows("User-agent: bigcrawl\nDisallow:\nUser-agent: x\nDisallow: /", "/a")


def test_rules_before_any_group_are_for_nobody() -> None:
    """A rule needs a user agent to apply to."""
    assert allows("Disallow: /\nUser-agent: *\nDisallow: /b", "/a")


@each(
    "rules, path, allowed",
    [
        # The RFC's own examples, §2.2.2, §2.2.3 and §5.
        ("Disallow: /example/\nAllow: /example/page/", "/example/page/x", True),
        ("Disallow: /example/\nAllow: /example/page/", "/example/other", False),
        (
            "Allow: /example/page/\nDisallow: /example/page/disallowed.gif",
            "/example/page/disallowed.gif",
            False,
        ),
        ("Disallow: *.gif$\nAllow: /example/", "/a.gif", False),
        ("Disallow: *.gif$\nAllow: /example/", "/a.gif?x", True),
        ("Disallow: *.gif$\nAllow: /example/", "/example/a.gif", True),
        ("Disallow: /path/file-with-a-%2A.html", "/path/file-with-a-*.html", False),
        ("Disallow: /path/file-with-a-%2A.html", "/path/file-with-a-x.html", True),
        ("Disallow: /path/foo-%24", "/path/foo-$", False),
        ("Disallow: /foo/bar?baz=quz", "/foo/bar?baz=quz", False),
        ("Disallow: /foo/bar/ツ", "/foo/bar/%E3%83%84", False),
        ("Disallow: /foo/bar/%E3%83%84", "/foo/bar/%e3%83%84", False),
        ("Disallow: /foo/bar/%62%61%7A", "/foo/bar/baz", False),
        # The longest match wins, Allow on a tie, whatever the order.
        ("Allow: /a\nDisallow: /a", "/a", True),
        ("Disallow: /a\nAllow: /a", "/a", True),
        ("Disallow: /\nAllow: /a", "/a/b", True),
        ("Disallow: /\nAllow: /a", "/b", False),
        ("Disallow: /a*c\nAllow: /a", "/abc", False),
        # Wildcards and anchors.
        ("Disallow: /*?", "/a?b", False),
        ("Disallow: /*?", "/a", True),
        ("Disallow: /a$", "/a", False),
        ("Disallow: /a$", "/ab", True),
        ("Disallow: /a*b*c$", "/axbxc", False),
        ("Disallow: *", "/x", False),
        ("Disallow: /A", "/a", True),
        ("Disallow: /a b", "/a%20b", False),
        ("Disallow: /a:b", "/a:b", False),
        # Patterns that match no path.
        ("Disallow: a", "/a", True),
        ("Disallow: http://site.example/a", "/a", True),
        # Records written loosely.
        ("disallow:/a", "/a", False),
        ("DISALLOW : /a # why", "/a", False),
        ("Disalow: /a", "/a", False),
        ("Disallow /a", "/a", False),
        ("Disallow\t/a:b", "/a:b", False),
        ("Disallow all of this", "/all", True),
        # robots.txt itself is always allowed.
        ("Disallow: /", "/robots.txt", True),
        ("Disallow: /", "/robots.txt?x", True),
        ("Disallow: /", "/", False),
    ],
)
def test_paths_are_matched_as_the_rfc_says(rules: str, path: str, allowed: bool) -> None:
    """RFC 9309 §2.2.2 and §2.2.3, and what site owners write instead."""
    assert allows(f"User-agent: *\n{rules}\n", path) is allowed


@pytest.mark.parametrize(
    "body",
    [
        b"User-agent: *\nDisallow: /a\n",
        b"User-agent: *\rDisallow: /a\r",
        b"User-agent: *\r\n\r\nDisallow: /a",
        b"\xef\xbb\xbfUser-agent: *\nDisallow: /a",
        "\ufeffUser-agent: *\nDisallow: /a".encode("utf-16-le"),
        "\ufeffUser-agent: *\nDisallow: /a".encode("utf-16-be"),
        "User-agent: *\nDisallow: /a".encode("utf-16-le"),
        b"User-agent: *\n\xff\xfe\x85: \xe9\nDisallow: /a\n",
        b"<!DOCTYPE html><html><body><pre>\nUser-agent: *\nDisallow: /a\n</pre>",
        b"\n\n  User-agent: *  \n\t Disallow:\t/a \x0c\n",
    ],
)
def test_line_ends_marks_and_encodings_are_survived(body: bytes) -> None:
    """However the file was written, its rules are found, and nothing that is not there."""
    assert not allows(body, "/a")
    assert allows(body, "/b")


def test_patterns_in_another_encoding_match_byte_by_byte() -> None:
    """A file in Latin-1 forbids the URL that its site's pages in Latin-1 link to."""
    robots = "User-agent: *\nDisallow: /caf\u00e9/".encode("latin-1")
    assert not allows(robots, "/caf%E9/x")
    assert allows(robots, "/cafe/x")


def test_an_html_page_is_no_rules() -> None:
    """What servers send for a missing file, with status 200, forbids nothing."""
    html = b"<html><head><title>User agent: none</title></head><body>Disallow all: see terms</body></html>"
    assert RobotsRules.parse(html, "bigcrawl") == RobotsRules.allow_all()


def test_only_the_first_500_kib_count_up_to_the_last_whole_line() -> None:
    """Rules beyond are not read, and half a line is no line: `/a` cut off `/abc` would forbid more."""
    head = b"User-agent: *\nDisallow: /first\n"
    fill = b"#" * (BODY_BYTES_MAX - len(head) - len(b"\nDisallow: /a")) + b"\n"
    body = head + fill + b"Disallow: /abc\nDisallow: /late\n"
    assert body[:BODY_BYTES_MAX].endswith(b"Disallow: /a")
    assert [allows(body, path) for path in ("/first", "/a", "/abc", "/late")] == [False, True, True, True]


@pytest.mark.parametrize(
    ("records", "delay_ms"),
    [
        ("Disallow: /a", None),
        ("Crawl-delay: 2", 2_000),
        ("Crawl-delay: 0.25", 250),
        ("crawl-delay:10\nDisallow: /a", 10_000),
        ("Crawl-delay: 0", 0),
        ("Crawl-delay: 3\nCrawl-delay: 7\nCrawl-delay: 5", 7_000),
        ("Crawl-delay: -1", None),
        ("Crawl-delay: nan", None),
        ("Crawl-delay: inf", None),
        ("Crawl-delay: ten", None),
        ("Crawl-delay: 1e300", 24 * HOUR_MS),
    ],
)
def test_crawl_delay_is_that_of_our_group(records: str, delay_ms: int | None) -> None:
    """In milliseconds; the longest of several; nonsense is none; a day at most."""
    robots = f"User-agent: *\nCrawl-delay: 99\nDisallow: /b\n\nUser-agent: bigcrawl\n{records}\n"
    rules = RobotsRules.parse(robots.encode(), "BigCrawl")
    assert rules.crawl_delay_ms == delay_ms
    assert RobotsRules.from_bytes(rules.to_bytes()) == rules


def test_only_the_group_for_us_is_kept() -> None:
    """A file with rules for a hundred robots is as small in the host record as ours among them."""
    others = "".join(f"User-agent: robot{n}\nDisallow: /{n}/{'x' * n}\n\n" for n in range(100))
    rules = RobotsRules.parse((others + "User-agent: bigcrawl\nDisallow: /a\nDisallow: /a\n").encode(), "bigcrawl")
    assert repr(rules) == "RobotsRules(1 lines, crawl_delay_ms=None)"
    assert len(rules.to_bytes()) < 40


def test_allow_all_and_forbid_all_are_what_they_say() -> None:
    """Both survive the host record; robots.txt can be asked for under both."""
    for rules, allowed in ((RobotsRules.allow_all(), True), (RobotsRules.forbid_all(), False)):
        assert RobotsRules.from_bytes(rules.to_bytes()) == rules
        assert rules.is_allowed(SITE + "/") is allowed
        assert rules.is_allowed(SITE + "/a?b") is allowed
        assert rules.is_allowed(SITE + "/robots.txt")


RECORDS = st.one_of(
    st.binary(max_size=40),
    st.builds(
        lambda name, value: name + b": " + value,
        st.sampled_from([b"User-agent", b"Allow", b"Disallow", b"Crawl-delay"]),
        st.one_of(st.sampled_from([b"*", b"bigcrawl", b"/", b"/a", b"/*b$", b"3", b"0.5"]), st.binary(max_size=20)),
    ),
)


@given(st.lists(RECORDS, max_size=12), st.sampled_from(["/", "/a", "/ab?c", "/%C3%A9"]))
def test_any_file_can_be_parsed_stored_and_asked(records: list[bytes], path: str) -> None:
    """Parsing never raises, and what comes back from the host record is the same rules."""
    rules = RobotsRules.parse(b"User-agent: *\n" + b"\n".join(records), "bigcrawl")
    again = RobotsRules.from_bytes(rules.to_bytes())
    assert again == rules
    assert hash(again) == hash(rules)
    assert again.is_allowed(SITE + path) == rules.is_allowed(SITE + path)


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"\x02" + zlib.compress(b"\nDisallow: /"),
        b"\x01",
        b"\x01garbage",
        b"\x01" + zlib.compress(b"\nDisallow: /")[:-1],
        b"\x01" + zlib.compress(b"\nUser-agent: x"),
        b"\x01" + zlib.compress(b"soon\nDisallow: /"),
        b"\x01" + zlib.compress(b"\nDisallow: /\xff"),
        b"\x01" + zlib.compress(b"\nDisallow: /" + b"a" * 3_000_000),
    ],
)
def test_damaged_rules_are_an_error_not_other_rules(packed: bytes) -> None:
    """Another format version, a cut, a bomb: never silently "everything is allowed"."""
    with pytest.raises(CorruptionError):
        RobotsRules.from_bytes(packed)


@pytest.mark.parametrize(
    ("status", "reason", "allowed"),
    [
        (200, "rules", False),
        (206, "rules", False),
        (301, "redirects", True),
        (304, "redirects", True),
        (400, "absent", True),
        (401, "absent", True),
        (403, "absent", True),
        (404, "absent", True),
        (410, "absent", True),
        (451, "absent", True),
        (429, "unreachable", False),
        (500, "unreachable", False),
        (503, "unreachable", False),
        (599, "unreachable", False),
        (999, "unreachable", False),
        (None, "unreachable", False),
    ],
)
def test_the_status_decides_what_the_answer_means(status: int | None, reason: str, allowed: bool) -> None:
    """2xx is read, 4xx and endless redirects allow, 429, 5xx and silence forbid (RFC 9309 §2.3.1)."""
    verdict = verdict_on_response(status, b"User-agent: *\nDisallow: /a", "bigcrawl")
    assert verdict.reason == reason
    assert verdict.rules.is_allowed(SITE + "/a") is allowed
    assert verdict.expires_in_ms == (60_000 if reason == "unreachable" else KEPT_MS)


def test_an_unreachable_file_is_asked_for_again_ever_more_rarely() -> None:
    """The wait doubles from a minute to an hour; jitter lengthens it."""
    waits = [verdict_on_response(503, b"", "bigcrawl", attempts=n).expires_in_ms for n in range(1, 9)]
    assert waits == [60_000, 120_000, 240_000, 480_000, 960_000, 1_920_000, HOUR_MS, HOUR_MS]
    assert verdict_on_response(None, b"", "bigcrawl", attempts=1, jitter=1.0).expires_in_ms == 90_000


@pytest.mark.parametrize("line", ["*SiteBot*", "*SiteBot", "**", "*/1.0", "*-", "*,*", "?", '"*"', "(*)", ""])
def test_only_a_lone_star_is_everybody(line: str) -> None:
    """A line with a star and more names nobody we know; its rules are not ours, nor do they join those before them."""
    assert allows(f"User-agent: {line}\nDisallow: /", "/a")
    assert allows(f"User-agent: *\nDisallow: /b\nUser-agent: {line}\nDisallow: /", "/a")


@pytest.mark.parametrize("line", ["*", " * ", "*\t", "* # all", "* everybody"])
def test_a_star_alone_is_everybody(line: str) -> None:
    """Blanks, a comment, or words behind it change nothing."""
    assert not allows(f"User-agent: {line}\nDisallow: /", "/a")


@pytest.mark.parametrize(
    "line", ["big", "bigcrawler", "bigcrawl-x", "x-bigcrawl", "xbigcrawl", "*bigcrawl*", "bigcrawl2"]
)
def test_what_only_resembles_our_token_is_somebody_else(line: str) -> None:
    """The whole token counts, neither its beginning nor its end."""
    assert allows(f"User-agent: {line}\nDisallow: /", "/a")
