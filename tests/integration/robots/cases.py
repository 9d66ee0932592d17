"""What RFC 9309 says, as files and what may be fetched under them; each row names its section.

To add a row: the section, what it holds to in a few words, the file, and paths on both sides. Paths stand as they are
sent, which is their canonical form. The crawler is called ExampleBot, as in the RFC's own examples.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.integration.robots.origin import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KIB = 1024
LIMIT = 500 * KIB


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One row; `answers` replaces what the paths of its host are answered with, robots.txt among them."""

    section: str
    rule: str
    robots: str | bytes
    allowed: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    answers: Mapping[str, Sequence[Answer]] = field(default_factory=dict)

    def answers_of_host(self) -> dict[str, Sequence[Answer]]:
        body = self.robots if isinstance(self.robots, bytes) else self.robots.encode()
        return {"/robots.txt": (Answer(200, body),), **self.answers}


def both(section: str, rule: str, robots: str | bytes, allowed: str = "", forbidden: str = "") -> Case:
    """A row with the paths of each side in one text, apart by blanks."""
    return Case(section, rule, robots, tuple(allowed.split()), tuple(forbidden.split()))


def rules(section: str, rule: str, lines: str, allowed: str = "", forbidden: str = "") -> Case:
    """A row whose file has one group, for all."""
    return both(section, rule, f"User-agent: *\n{lines}\n", allowed, forbidden)


def status(code: int | None, *, open_: bool, section: str, rule: str) -> Case:
    """A row whose robots.txt is answered with this status, and a body that says the contrary of what it means."""
    body = b"User-agent: *\n" + (b"Disallow: /" if open_ else b"Allow: /")
    paths = ("/a", "/b/c")
    answers = {"/robots.txt": (Answer(code, body),)}
    return Case(section, rule, "", paths if open_ else (), () if open_ else paths, answers)


def moved(to: str, code: int = 301) -> Answer:
    return Answer(code, b"moved", (("Location", to),))


def hops(count: int) -> dict[str, Sequence[Answer]]:
    """robots.txt behind so many redirects within its host."""
    chain = ["/robots.txt", *(f"/hop{number}" for number in range(1, count + 1))]
    answers: dict[str, Sequence[Answer]] = {here: (moved(there),) for here, there in itertools.pairwise(chain)}
    return {**answers, chain[-1]: (Answer(200, b"User-agent: *\nDisallow: /no\n"),)}


def filled(head: str, size: int, tail: str) -> bytes:
    """A file of `size` bytes before its tail."""
    line = "# filler filler filler filler filler\n"
    room = size - len(head)
    return (head + line * (room // len(line)) + "#" * (room % len(line) - 1) + "\n" + tail).encode()


PROTOCOL = (
    both("2.1", "a group is user-agent lines and then rules", "User-agent: ExampleBot\nDisallow: /no", "/ok", "/no"),
    both("2.1", "a file of several groups", "User-agent: a\nDisallow: /\n\nUser-agent: *\nDisallow: /no", "/ok", "/no"),
    both("2.1", "a file without groups allows everything", "# nothing here\n", "/ /a /b?c"),
    both("2.1", "an empty file allows everything", "", "/ /a"),
    both("2.1", "rules before the first user-agent line are for nobody", "Disallow: /\nUser-agent: *\nAllow: /", "/a"),
    both("2.1", "user-agent lines without rules allow everything", "User-agent: ExampleBot\nUser-agent: *\n", "/a"),
)

SYNTAX = (
    both("2.2", "names of records without case", "USER-AGENT: *\ndisALLOW: /no\naLLow: /no/ok", "/no/ok", "/no"),
    both("2.2", "blanks around names and values", " User-agent \t:  * \n\tDisallow\t: \t/no  ", "/ok", "/no"),
    both("2.2", "no blank behind the colon", "User-agent:*\nDisallow:/no", "/ok", "/no"),
    both("2.2", "lines end with LF", "User-agent: *\nDisallow: /no\n", "/ok", "/no"),
    both("2.2", "lines end with CR LF", "User-agent: *\r\nDisallow: /no\r\n", "/ok", "/no"),
    both("2.2", "lines end with CR", "User-agent: *\rDisallow: /no\r", "/ok", "/no"),
    both(
        "2.2",
        "line ends of all kinds in one file",
        "User-agent: *\r\n\rDisallow: /no\n\r\nDisallow: /x",
        "/ok",
        "/no /x",
    ),
    both("2.2", "the last line without an end", "User-agent: *\nDisallow: /no", "/ok", "/no"),
    both("2.2", "empty lines within a group", "User-agent: *\n\n\nDisallow: /no\n\n\nDisallow: /x", "/ok", "/no /x"),
    both("2.2", "comments on lines of their own", "# a\nUser-agent: *\n# b\n  # c\nDisallow: /no", "/ok", "/no"),
    both(
        "2.2", "comments behind values", "User-agent: * # all\nDisallow: /no#this\nDisallow: /x # that", "/ok", "/no /x"
    ),
    both("2.2", "an empty value forbids nothing", "User-agent: *\nDisallow:", "/ /a"),
    both("2.2", "an empty Allow allows nothing anew", "User-agent: *\nAllow:\nDisallow: /no", "/ok", "/no"),
    both("2.2", "a pattern begins with a slash", "User-agent: *\nDisallow: no", "/no /ok"),
    both("2.2", "letters beyond ASCII in a comment", "# für alle\nUser-agent: *\nDisallow: /no", "/ok", "/no"),
    both("2.2", "a UTF-8 mark at the start", b"\xef\xbb\xbfUser-agent: *\nDisallow: /no", "/ok", "/no"),
)

AGENTS = (
    both("2.2.1", "our token", "User-agent: ExampleBot\nDisallow: /no\n\nUser-agent: *\nDisallow: /", "/ok", "/no"),
    both("2.2.1", "without case", "User-agent: eXAMPLEbOT\nDisallow: /no\n\nUser-agent: *\nDisallow: /", "/ok", "/no"),
    both(
        "2.2.1", "the group for all behind ours", "User-agent: *\nDisallow: /\n\nUser-agent: ExampleBot\nAllow: /", "/a"
    ),
    both(
        "2.2.1", "* where nobody names us", "User-agent: foobot\nAllow: /\n\nUser-agent: *\nDisallow: /no", "/ok", "/no"
    ),
    both("2.2.1", "no group for us and none for all", "User-agent: foobot\nDisallow: /", "/a"),
    both(
        "2.2.1",
        "groups that name us are one",
        "User-agent: ExampleBot\nDisallow: /a\n\nUser-agent: *\nDisallow: /b\n\nUser-agent: examplebot\nDisallow: /c",
        "/b /ok",
        "/a /c",
    ),
    both(
        "2.2.1",
        "groups for all are one",
        "User-agent: *\nDisallow: /a\n\nUser-agent: x\nDisallow: /b\n\nUser-agent: *\nDisallow: /c",
        "/b",
        "/a /c",
    ),
    both(
        "2.2.1",
        "several agents share a group",
        "User-agent: foobot\nUser-agent: ExampleBot\nUser-agent: barbot\nDisallow: /no\n\nUser-agent: *\nDisallow: /",
        "/ok",
        "/no",
    ),
    both("2.2.1", "the part of our token is another's", "User-agent: Example\nDisallow: /", "/a"),
    both("2.2.1", "our token with more is another's", "User-agent: ExampleBot-News\nDisallow: /", "/a"),
    both("2.2.1", "another token that ends with ours", "User-agent: MyExampleBot\nDisallow: /", "/a"),
    both("2.2.1", "a version behind our token", "User-agent: ExampleBot/0.1\nDisallow: /no", "/ok", "/no"),
    both(
        "2.2.1", "our own empty group stands in for all", "User-agent: *\nDisallow: /\n\nUser-agent: ExampleBot", "/a"
    ),
    both(
        "2.2.1",
        "our group and the one for all are not added up",
        "User-agent: *\nDisallow: /all\n\nUser-agent: ExampleBot\nDisallow: /no",
        "/all",
        "/no",
    ),
    both("2.2.1", "* and our token in one group", "User-agent: *\nUser-agent: ExampleBot\nDisallow: /no", "/ok", "/no"),
    both("2.2.1", "Mozilla is not our token", "User-agent: Mozilla\nDisallow: /", "/a"),
    both("2.2.1", "compatible is not our token", "User-agent: compatible\nDisallow: /", "/a"),
)

LINES = (
    rules("2.2.2", "a path from its start", "Disallow: /no", "/ok /a/no", "/no /now /no/x"),
    rules("2.2.2", "with case", "Disallow: /No", "/no", "/No"),
    rules("2.2.2", "a slash closes everything", "Disallow: /", "", "/ /a /b?c"),
    rules("2.2.2", "no rule that matches allows", "Disallow: /no\nAllow: /yes", "/ok"),
    rules("2.2.2", "the most octets win: Allow", "Disallow: /a\nAllow: /a/b", "/a/b /a/bc", "/a /a/c"),
    rules("2.2.2", "the most octets win: Disallow", "Allow: /a\nDisallow: /a/b", "/a /a/c", "/a/b"),
    rules("2.2.2", "whatever the order", "Allow: /a/b\nDisallow: /a\nDisallow: /a/b/c", "/a/b", "/a /a/b/c"),
    rules("2.2.2", "Allow on a tie, first", "Allow: /a\nDisallow: /a", "/a /ab"),
    rules("2.2.2", "Allow on a tie, last", "Disallow: /a\nAllow: /a", "/a /ab"),
    rules("2.2.2", "a directory with its slash", "Disallow: /dir/", "/dir /dirx", "/dir/ /dir/a"),
    rules("2.2.2", "the query counts", "Disallow: /foo/bar?baz=quz", "/foo/bar /foo/bar?baz=qux", "/foo/bar?baz=quz"),
    rules(
        "2.2.2",
        "a URL in a query, escaped or not",
        "Disallow: /foo/bar?baz=https://foo.bar",
        "/foo/bar?baz=https",
        "/foo/bar?baz=https://foo.bar /foo/bar?baz=https%3A%2F%2Ffoo.bar",
    ),
    rules(
        "2.2.2",
        "an escaped URL in the rule",
        "Disallow: /foo/bar?baz=https%3A%2F%2Ffoo.bar",
        "/foo/bar",
        "/foo/bar?baz=https://foo.bar /foo/bar?baz=https%3A%2F%2Ffoo.bar",
    ),
    rules(
        "2.2.2", "letters beyond ASCII in the rule", "Disallow: /foo/bar/ツ", "/foo/bar/%E3%83%83", "/foo/bar/%E3%83%84"
    ),
    rules("2.2.2", "escaped letters in the rule", "Disallow: /foo/bar/%E3%83%84", "/foo/bar/x", "/foo/bar/%E3%83%84"),
    rules("2.2.2", "escapes in small letters", "Disallow: /foo/%e3%83%84", "/foo/x", "/foo/%E3%83%84 /foo/%e3%83%84x"),
    rules("2.2.2", "needless escapes in the rule", "Disallow: /foo/bar/%62%61%7A", "/foo/bar/b", "/foo/bar/baz"),
    rules("2.2.2", "needless escapes in the URL", "Disallow: /foo/bar/baz", "/foo/bar/%62", "/foo/bar/%62%61%7A"),
    rules("2.2.2", "an escaped slash is no slash", "Disallow: /a/b", "/a%2Fb", "/a/b"),
    rules("2.2.2", "a slash is no escaped slash", "Disallow: /a%2Fb", "/a/b", "/a%2Fb /a%2fb/c"),
    rules("2.2.2", "an escaped question mark", "Disallow: /a%3Fb", "/a?b", "/a%3Fb"),
    rules("2.2.2", "a question mark is not escaped", "Disallow: /a?b", "/a%3Fb", "/a?b"),
    rules("2.2.2", "tilde, both ways", "Disallow: /~a\nDisallow: /%7Eb", "/c", "/~a /%7Ea /~b /%7eb"),
    rules("2.2.2", "an escaped percent sign", "Disallow: /%2541", "/%41 /A", "/%2541"),
    rules("2.2.2", "blanks are escaped", "Disallow: /a b", "/a", "/a%20b"),
    rules("2.2.2", "rules alike count once", "Disallow: /a\nDisallow: /a\nAllow: /a/b\nAllow: /a/b", "/a/b", "/a"),
    rules("2.2.2", "robots.txt is always allowed", "Disallow: /\nDisallow: /robots.txt", "", "/a"),
    rules("2.2.2", "an index page is no directory", "Disallow: /d/\nAllow: /d/index.html", "/d/index.html", "/d/"),
    both("2.2.2", "bytes of another charset", "User-agent: *\nDisallow: /caf\xe9".encode("latin-1"), "/caf", "/caf%E9"),
)

CHARACTERS = (
    rules(
        "2.2.3",
        "# begins a comment",
        "Allow: /no/ok # comment in line\n# on its own line\nDisallow: /no",
        "/no/ok",
        "/no",
    ),
    rules(
        "2.2.3",
        "$ is the end",
        "Allow: /this/path/exactly$\nDisallow: /this",
        "/this/path/exactly",
        "/this/path/exactly/x /this/path/exactly?x /this",
    ),
    rules(
        "2.2.3",
        "* is anything",
        "Allow: /this/*/exactly\nDisallow: /this",
        "/this/a/exactly /this/a/b/exactly/c",
        "/this/exactly /this/a/b",
    ),
    rules("2.2.3", "* is nothing, too", "Disallow: /a*b", "/a /b", "/ab /axb /a/x/b/c"),
    rules("2.2.3", "* at the end adds nothing", "Disallow: /a*", "/b", "/a /ab"),
    rules(
        "2.2.3", "several *", "Disallow: /*/private/*/x", "/private/x /a/private/x", "/a/private/b/x /a/b/private/c/xy"
    ),
    rules("2.2.3", "* and $ together", "Disallow: /*.gif$", "/a.gif?x /a.gifs", "/a.gif /d/.gif"),
    rules("2.2.3", "* before the first slash", "Disallow: *.gif$", "/a.gif?x", "/a.gif"),
    rules("2.2.3", "* alone closes everything", "Disallow: *", "", "/ /a"),
    rules("2.2.3", "$ behind a slash is the front page", "Disallow: /$", "/a /?x", "/"),
    rules("2.2.3", "only the front page is open", "Allow: /$\nDisallow: /", "/", "/a"),
    rules("2.2.3", "$ within a pattern is itself", "Disallow: /a$b", "/a /ab", "/a$b /a$bc"),
    rules("2.2.3", "%24 is the character", "Disallow: /path/foo-%24", "/path/foo-", "/path/foo-$ /path/foo-%24"),
    rules(
        "2.2.3",
        "%2A is the character",
        "Disallow: /path/file-with-a-%2A.html",
        "/path/file-with-a-b.html",
        "/path/file-with-a-*.html /path/file-with-a-%2A.html",
    ),
    rules("2.2.3", "a star in a URL is one character", "Disallow: /a*c", "/a*b", "/a*c /abc"),
    rules("2.2.3", "* spans path and query", "Disallow: /*id=", "/a?x=1", "/a?id=1 /a/id=2"),
    rules("2.2.3", "* against a URL in a query", "Disallow: /*/deep/", "/?u=/flat/", "/a/deep/b /?u=/deep/"),
    rules("2.2.3", "every query", "Disallow: /*?", "/a", "/a? /a?b /?"),
    rules("2.2.3", "octets of wildcards count", "Allow: /a/b\nDisallow: /*/b*****", "/a/c", "/a/b"),
    rules(
        "2.2.3",
        "stars without end take no time",
        "Disallow: /" + "a*" * 200 + "b$",
        "/" + "a" * 400,
        "/" + "a" * 200 + "b",
    ),
)

OTHERS = (
    both(
        "2.2.4",
        "Sitemap between agents and rules",
        "User-agent: ExampleBot\nSitemap: https://a.example/s.xml\nDisallow: /no",
        "/ok",
        "/no",
    ),
    both(
        "2.2.4",
        "Sitemap between agents",
        "User-agent: *\nSitemap: https://a.example/s.xml\nUser-agent: x\nDisallow: /no",
        "/ok",
        "/no",
    ),
    both(
        "2.2.4",
        "Sitemap between groups",
        "User-agent: x\nDisallow: /\nSitemap: https://a.example/s.xml\nUser-agent: *\nDisallow: /no",
        "/ok",
        "/no",
    ),
    both(
        "2.2.4",
        "records that nobody knows",
        "Foo: /bar\nUser-agent: *\nHost: a.example\nClean-param: a\nNoindex: /ok\nDisallow: /no",
        "/ok",
        "/no",
    ),
    both(
        "2.2.4",
        "Crawl-delay between agents",
        "User-agent: *\nCrawl-delay: 0.01\nUser-agent: x\nDisallow: /no",
        "/ok",
        "/no",
    ),
)

SUCCESS = (
    rules("2.3.1.1", "rules that were read are followed", "Disallow: /no", "/ok", "/no"),
    Case(
        "2.3.1.1", "any 2xx", "", ("/ok",), ("/no",), {"/robots.txt": (Answer(203, b"User-agent: *\nDisallow: /no"),)}
    ),
    Case(
        "2.3",
        "whatever the media type",
        "",
        ("/ok",),
        ("/no",),
        {"/robots.txt": (Answer(200, b"User-agent: *\nDisallow: /no", (("Content-Type", "text/html"),)),)},
    ),
    Case(
        "2.3",
        "without a media type",
        "",
        ("/ok",),
        ("/no",),
        {"/robots.txt": (Answer(200, b"User-agent: *\nDisallow: /no", ()),)},
    ),
    Case(
        "2.3",
        "a charset that it has not",
        "",
        ("/ok",),
        ("/no/%C3%A9",),
        {
            "/robots.txt": (
                Answer(
                    200, "User-agent: *\nDisallow: /no/é".encode(), (("Content-Type", "text/plain; charset=koi8-r"),)
                ),
            )
        },
    ),
)

REDIRECTS = (
    *(
        Case(
            "2.3.1.2",
            f"{code} is followed",
            "",
            ("/ok",),
            ("/no",),
            {"/robots.txt": (moved("/r.txt", code),), "/r.txt": (Answer(200, b"User-agent: *\nDisallow: /no"),)},
        )
        for code in (301, 302, 303, 307, 308)
    ),
    *(
        Case("2.3.1.2", f"{count} redirects are followed", "", ("/ok",), ("/no",), hops(count))
        for count in (2, 3, 4, 5)
    ),
    Case(
        "2.3.1.2", "redirects to a 404", "", ("/a",), (), {"/robots.txt": (moved("/r"),), "/r": (Answer(404, b"no"),)}
    ),
    Case("2.3.1.2", "redirects without end", "", ("/a",), (), {"/robots.txt": (moved("/robots.txt"),)}),
    Case("2.3.1.2", "a redirect to nowhere", "", ("/a",), (), {"/robots.txt": (Answer(301, b"moved", ()),)}),
    Case("2.3.1.2", "a redirect to another scheme", "", ("/a",), (), {"/robots.txt": (moved("ftp://a.example/r"),)}),
)

STATUSES = (
    *(
        status(code, open_=True, section="2.3.1.3", rule=f"{code}: unavailable, everything is allowed")
        for code in (400, 401, 402, 403, 404, 405, 406, 410, 418, 451)
    ),
    *(
        status(code, open_=False, section="2.3.1.4", rule=f"{code}: unreachable, nothing is allowed")
        for code in (500, 501, 502, 503, 504, 599)
    ),
    status(429, open_=False, section="2.3.1.4", rule="429: not now, so nothing is allowed"),
    status(None, open_=False, section="2.3.1.4", rule="no answer: unreachable, nothing is allowed"),
)

ERRORS = (
    both(
        "2.3.1.5",
        "HTML instead of rules",
        "<!DOCTYPE html><html><head><title>Disallow: x</title></head><body>\n"
        "<p>User-agent: yours.</p><p>Disallow: /</p></body></html>",
        "/a",
    ),
    both("2.3.1.5", "bytes that are no text", bytes(range(256)) * 20, "/a"),
    both(
        "2.3.1.5",
        "rules between bytes that are no text",
        b"\x00\xff\xfe: \xe9\nUser-agent: *\n\x80\x81\nDisallow: /no\n\xff",
        "/ok",
        "/no",
    ),
    both("2.3.1.5", "lines without a colon", "User-agent: *\nThis is a sentence.\nDisallow: /no", "/ok", "/no"),
    both("2.3.1.5", "UTF-16 with its mark", "\ufeffUser-agent: *\nDisallow: /no".encode("utf-16-le"), "/ok", "/no"),
    both(
        "2.3.1.5",
        "a group that is broken does not harm the next",
        "User-agent\nDisallow /\n:::\nUser-agent: *\nDisallow: /no",
        "/ok",
        "/no",
    ),
    both(
        "2.3.1.5",
        "a line of 100,000 characters",
        f"User-agent: *\nDisallow: /{'x' * 100_000}\nDisallow: /no",
        "/ok",
        "/no",
    ),
)

LIMITS = (
    both("2.5", "500 KiB are read", filled("User-agent: *\n", LIMIT - 40, "Disallow: /no\n"), "/ok", "/no"),
    both(
        "2.5",
        "of more, the first 500 KiB",
        filled("User-agent: *\nDisallow: /no\n", LIMIT + 1, "Disallow: /late\n"),
        "/late",
        "/no",
    ),
    both(
        "2.5",
        "a rule cut by the limit is none",
        filled("User-agent: *\nDisallow: /no\n", LIMIT - 12, "Disallow: /abc\n"),
        "/a /abc",
        "/no",
    ),
    both("2.5", "3 MiB", filled("User-agent: *\nDisallow: /no\n", 3 * KIB * KIB, "Disallow: /\n"), "/ok", "/no"),
    both(
        "2.5",
        "12 MiB, of which the most is not waited for",
        filled("User-agent: *\nDisallow: /no\n", 12 * KIB * KIB, "Disallow: /\n"),
        "/ok",
        "/no",
    ),
    both(
        "2.5",
        "10,000 rules",
        "User-agent: *\n" + "".join(f"Disallow: /no/{n}/\n" for n in range(10_000)),
        "/no/10000/ /no/1",
        "/no/0/ /no/9999/a",
    ),
)

EXAMPLES = (
    both(
        "5.1",
        "foobot's rules are not ours",
        "User-agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n\n"
        "User-agent: foobot\nDisallow:/\nAllow:/example/page.html\nAllow:/example/allowed.gif\n\n"
        "User-agent: barbot\nUser-agent: bazbot\nDisallow: /example/page.html\n\nUser-agent: quxbot\n",
        "/publications/a.html /a /a.gif?x",
        "/example/page.html /example/allowed.gif /a.gif",
    ),
    both(
        "5.1",
        "as foobot",
        "User-agent: *\nDisallow: *.gif$\n\nUser-agent: ExampleBot\nDisallow:/\n"
        "Allow:/example/page.html\nAllow:/example/allowed.gif",
        "/example/page.html /example/allowed.gif",
        "/ /a /a.gif",
    ),
    both(
        "5.1",
        "as bazbot",
        "User-agent: *\nDisallow: *.gif$\n\nUser-agent: barbot\nUser-agent: ExampleBot\nDisallow: /example/page.html",
        "/a.gif /example/other.html",
        "/example/page.html",
    ),
    both(
        "5.1",
        "as quxbot",
        "User-agent: *\nDisallow: *.gif$\nDisallow: /example/\n\nUser-agent: ExampleBot\n",
        "/a.gif /example/page.html",
    ),
    both(
        "5.2",
        "the longest match",
        "User-Agent: ExampleBot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif",
        "/example/page/ /example/page/a.gif",
        "/example/page/disallowed.gif",
    ),
)

CASES = (
    *PROTOCOL,
    *SYNTAX,
    *AGENTS,
    *LINES,
    *CHARACTERS,
    *OTHERS,
    *SUCCESS,
    *REDIRECTS,
    *STATUSES,
    *ERRORS,
    *LIMITS,
    *EXAMPLES,
)
