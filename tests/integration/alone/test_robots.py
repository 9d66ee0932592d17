"""RobotsMiddleware in a plain project: what is fetched, by the server's word, and what is said of the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.crawling.plain_project import QUEUE, ROBOTS, THROTTLE, Answer, NotedSite, PlainProject

if TYPE_CHECKING:
    from pathlib import Path

ALONE = {"DOWNLOADER_MIDDLEWARES": ROBOTS, "ROBOTSTXT_OBEY": False}
PATIENT = {
    "DOWNLOADER_MIDDLEWARES": {
        "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
        "tests.integration.alone.hasty.HastyRobots": 100,
        **THROTTLE,
    },
    "BIGCRAWL_BACKOFF": 0.01,
    "SCHEDULER_PRIORITY_QUEUE": QUEUE,
    "BIGCRAWL_HOST_DELAY": 0,
    "BIGCRAWL_SERVER_DELAY": 0,
}
RULES = b"User-agent: *\nDisallow: /\n\nUser-agent: plainbot\nDisallow: /no\nAllow: /no/yes\n"


def test_rules_are_asked_for_once_and_obeyed(tmp_path: Path) -> None:
    """Our group decides, the longest pattern wins, robots.txt comes first and once, ROBOTSTXT_OBEY has no say."""
    with NotedSite({"/robots.txt": Answer(body=RULES)}) as site, PlainProject(tmp_path, **ALONE) as project:
        hosts = ["127.0.0.2", "127.0.0.3"]
        urls = {path: [site.url(host, path) for host in hosts] for path in ("/a", "/no", "/no/yes", "/b?c=d")}
        log = project.run(*[url for both in urls.values() for url in both])
    assert project.items == {
        url: "ForbiddenByRobotsError" if path == "/no" else 200 for path, both in urls.items() for url in both
    }
    for host in hosts:
        assert site.paths(host)[0] == "/robots.txt"
        assert sorted(site.paths(host)[1:]) == ["/a", "/b?c=d", "/no/yes"]
    assert project.stat("bigcrawl/alone/forbidden") == 2
    assert project.stat("bigcrawl/alone/robots_fetched") == 2
    assert "its rules are kept within this process" in log
    assert "Traceback" not in log


def test_no_meta_key_switches_it_off(tmp_path: Path) -> None:
    """dont_obey_robotstxt is not looked at, and the log says so once."""
    settings = {**ALONE, "META": {"dont_obey_robotstxt": True}}
    with NotedSite({"/robots.txt": Answer(body=RULES)}) as site, PlainProject(tmp_path, **settings) as project:
        log = project.run(site.url("127.0.0.2", "/no"), site.url("127.0.0.2", "/a"))
    assert site.paths() == ["/robots.txt", "/a"]
    assert log.count("dont_obey_robotstxt has no effect") == 1


def test_the_whole_phrase_switches_it_off(tmp_path: Path) -> None:
    """BIGCRAWL_ROBOTS is what decides; then nothing is asked for, and the log says why."""
    settings = {**ALONE, "BIGCRAWL_ROBOTS": "ignore-i-own-these-hosts"}
    with NotedSite({"/robots.txt": Answer(body=RULES)}) as site, PlainProject(tmp_path, **settings) as project:
        log = project.run(site.url("127.0.0.2", "/no"))
    assert site.paths() == ["/no"]
    assert "BIGCRAWL_ROBOTS says that these hosts are yours" in log


ALLOWING = {
    "127.0.0.2": Answer(404),
    "127.0.0.3": Answer(403),
    "127.0.0.4": Answer(200, body=b""),
    "127.0.0.5": Answer(200, body=b"<html>no rules</html>"),
}
FORBIDDING = {"127.0.1.2": Answer(429), "127.0.1.3": Answer(500), "127.0.1.4": Answer(503)}


def test_what_an_answer_without_rules_means(tmp_path: Path) -> None:
    """4xx and no rules allow, a server that errs forbids: at once, where nothing can make its requests wait."""
    answers = {f"{host}/robots.txt": answer for host, answer in (ALLOWING | FORBIDDING).items()}
    with NotedSite(answers) as site, PlainProject(tmp_path, **ALONE) as project:
        urls = {host: site.url(host, "/a") for host in ALLOWING | FORBIDDING}
        project.run(*urls.values())
    for host, url in urls.items():
        assert site.paths(host) == ["/robots.txt"] + ["/a"] * (host in ALLOWING), host
        assert project.items[url] == (200 if host in ALLOWING else "ForbiddenByRobotsError")
    assert project.stat("bigcrawl/alone/unreachable") == len(FORBIDDING)


def test_fetch_that_other_middlewares_rewrite_asks_for_no_rules_of_its_own(tmp_path: Path) -> None:
    """Where every request is sent elsewhere, as some proxies want it, that of robots.txt is one and ends."""
    rewriting = {**ROBOTS, "tests.integration.alone.taking.Rewrites": 50}
    settings = {**ALONE, "DOWNLOADER_MIDDLEWARES": rewriting}
    with NotedSite({"/robots.txt?via": Answer(body=RULES)}) as site, PlainProject(tmp_path, **settings) as project:
        log = project.run(site.url("127.0.0.2", "/a"), site.url("127.0.0.2", "/no"))
    assert sorted(site.paths()) == ["/a?via", "/robots.txt?via"], log
    assert "Traceback" not in log


def test_dots_do_not_lead_around_a_rule(tmp_path: Path) -> None:
    """What is forbidden as the server would resolve it is forbidden."""
    with NotedSite({"/robots.txt": Answer(body=RULES)}) as site, PlainProject(tmp_path, **ALONE) as project:
        project.run(site.url("127.0.0.2", "/a/../no"), site.url("127.0.0.2", "/a/%2e%2e/no"))
    assert site.paths() == ["/robots.txt"]


def test_redirects_lead_to_the_rules(tmp_path: Path) -> None:
    """Up to five are followed, to other hosts too; rules found there are those of the host that was asked for."""
    with NotedSite() as site, PlainProject(tmp_path, **ALONE) as project:
        there = site.url("127.0.0.3", "/rules")
        hops = {f"127.0.0.2/hop{n}": Answer(302, headers={"Location": f"/hop{n + 1}"}) for n in range(3)}
        site.answers |= hops | {
            "127.0.0.2/robots.txt": Answer(301, headers={"Location": "/hop0"}),
            "127.0.0.2/hop3": Answer(301, headers={"Location": there}),
            "127.0.0.3/rules": Answer(body=b"User-agent: *\nDisallow: /no\n"),
        }
        project.run(site.url("127.0.0.2", "/no"), site.url("127.0.0.2", "/yes"))
    assert site.paths("127.0.0.2") == ["/robots.txt", "/hop0", "/hop1", "/hop2", "/hop3", "/yes"]
    assert site.paths("127.0.0.3") == ["/rules"]


def test_pages_wait_while_robots_txt_is_out_of_reach(tmp_path: Path) -> None:
    """With the throttle and its queue nothing is lost to a server that errs for a while, and nothing fetched early."""
    recovering = {"/robots.txt": lambda visits: Answer(503) if visits < 2 else Answer(body=RULES)}
    with NotedSite(recovering) as site, PlainProject(tmp_path, **PATIENT) as project:
        urls = [site.url("127.0.0.2", f"/{n}") for n in range(5)] + [site.url("127.0.0.2", "/no")]
        log = project.run(*urls)
    assert site.paths()[:3] == ["/robots.txt"] * 3
    assert sorted(site.paths()[3:]) == [f"/{n}" for n in range(5)]
    assert project.items == dict.fromkeys(urls[:5], 200) | {urls[5]: "ForbiddenByRobotsError"}, log
    assert "Traceback" not in log


def test_pages_end_when_robots_txt_stays_out_of_reach(tmp_path: Path) -> None:
    """After the third try the host's URLs end, counted as unreachable; nothing but robots.txt was asked for."""
    with NotedSite({"/robots.txt": Answer(500)}) as site, PlainProject(tmp_path, **PATIENT) as project:
        urls = [site.url("127.0.0.2", f"/{n}") for n in range(3)]
        project.run(*urls)
    assert site.paths() == ["/robots.txt"] * 3
    assert project.items == dict.fromkeys(urls, "ForbiddenByRobotsError")
    assert project.stat("bigcrawl/alone/unreachable") == 3


def test_robots_fetches_keep_the_host_delay(tmp_path: Path) -> None:
    """robots.txt, its redirects and pages are all fetches of their host."""
    settings = {
        **ALONE,
        "DOWNLOADER_MIDDLEWARES": {**ROBOTS, **THROTTLE},
        "BIGCRAWL_HOST_DELAY": 0.3,
        "BIGCRAWL_SERVER_DELAY": 0,
    }
    answers = {"/robots.txt": Answer(302, headers={"Location": "/r"}), "/r": Answer(body=RULES)}
    with NotedSite(answers) as site, PlainProject(tmp_path, **settings) as project:
        project.run(site.url("127.0.0.2", "/a"), site.url("127.0.0.2", "/b"))
    assert site.paths()[:2] == ["/robots.txt", "/r"]
    assert len(site.paths()) == 4
    assert min(site.rests("127.0.0.2")) >= 0.28


def test_scrapys_own_beside_it_is_told(tmp_path: Path) -> None:
    """Two that obey forbid no more than one; the log says how to spare the second fetch."""
    settings = {"DOWNLOADER_MIDDLEWARES": {"bigcrawl.middlewares.robots.RobotsMiddleware": 100}, "ROBOTSTXT_OBEY": True}
    with NotedSite({"/robots.txt": Answer(body=RULES)}) as site, PlainProject(tmp_path, **settings) as project:
        log = project.run(site.url("127.0.0.2", "/a"), site.url("127.0.0.2", "/no"))
    assert sorted(site.paths()) == ["/a", "/robots.txt", "/robots.txt"]
    assert "fetches each robots.txt once more; set ROBOTSTXT_OBEY = False" in log
