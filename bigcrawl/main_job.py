"""`make crawl`: a whole crawl in one command, resumed by the same seeds; without seeds, of a local web, and checked."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bigcrawl.exceptions import BigcrawlError, ConfigError
from bigcrawl.given import load_module
from bigcrawl.logs.plain import plain
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.embedded import EmbeddedServer
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.crawl.membership import MAY_REPEAT

if TYPE_CHECKING:
    from collections.abc import Iterator

STATE = Path("state")
WARC = Path("warc")
SIMWEB_NAME = "simweb"
WEB = STATE / "simweb-web"
SIMWEB_SETTINGS = {
    "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": "1",
    "BIGCRAWL_HOST_DELAY": "0.25",
    "BIGCRAWL_SERVER_DELAY": "0",  # each host of the small web has its own address
    "BIGCRAWL_PROGRESS_SECONDS": "5",
}
SIMWEB_DELAY_S = 0.25


def main() -> int:
    """Run the crawl; return scrapy's exit status, or 1 if the checker found faults."""
    parser = argparse.ArgumentParser(prog="make crawl")
    parser.add_argument("--seeds", default="", help="URLs, or a file of them; default: a small web served locally")
    parser.add_argument("--contact", default="", help="your web page or mail address, sent to servers")
    parser.add_argument("--fresh", action="store_true", help="start the crawl over: delete its state")
    parser.add_argument("arguments", nargs="*", help="passed on to scrapy")
    options = parser.parse_args()
    try:
        if options.seeds.strip():
            contact = options.contact.strip()
            return _crawl_seeds(options.seeds.strip(), contact, options.arguments, fresh=options.fresh)
        return _crawl_simweb(options.arguments, fresh=options.fresh)
    except BigcrawlError as error:
        print(f"bigcrawl: {plain(str(error))}", file=sys.stderr)
        return 1


def crawl_name(seeds: str) -> str:
    """Return the same name for the same seeds, even after a seeds file is edited."""
    words = sorted(seeds.split()) if "://" in seeds else [str(Path(seeds).expanduser().absolute())]
    return "seeds-" + hashlib.sha256("\n".join(words).encode()).hexdigest()[:10]


def _crawl_seeds(seeds: str, contact: str, arguments: list[str], *, fresh: bool) -> int:
    if "://" not in seeds and not Path(seeds).expanduser().is_file():
        raise ConfigError(f"SEEDS={seeds!r} must be URLs or a file of them")
    settings = {"BIGCRAWL_CONTACT": contact} if contact else {}
    return _run_scrapy(seeds, crawl_name(seeds), settings, arguments, fresh=fresh)


def _crawl_simweb(arguments: list[str], *, fresh: bool) -> int:
    load_module("bigcrawl_simweb")  # raises an error that names what to install
    if fresh:
        _forget_web()
    directory = WEB.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / "access.log"
    with _serving_simulated_web(directory, log):
        seeds = directory / "seeds.txt"
        text = _seeds_of(directory)
        if not seeds.exists() or seeds.read_text() != text:  # rewriting the file would make it a new set of seeds
            seeds.write_text(text)
        status = _run_scrapy(str(seeds), SIMWEB_NAME, SIMWEB_SETTINGS, arguments, fresh=fresh)
    return status or _check_access_log(directory, log)


def _forget_web() -> None:
    if not EmbeddedServer((STATE / SIMWEB_NAME / "redis").absolute()).stop_if_unused():
        raise ConfigError(f"crawl {SIMWEB_NAME} is running: stop it before FRESH=1")
    shutil.rmtree(WEB, ignore_errors=True)


@contextlib.contextmanager
def _serving_simulated_web(directory: Path, log: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "bigcrawl_simweb", "serve", "--state", str(directory), "--log", str(log)]
    command += ["--with-parent", str(os.getpid())]
    # In a new session, because Ctrl-C must reach only the crawl, which still waits for answers.
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert server.stdout is not None
    ready = server.stdout.readline()
    if not ready:
        raise ConfigError("the simulated web does not start: see the line above, or start from scratch with FRESH=1")
    print(f"serving {ready.strip()}", flush=True)
    try:
        yield
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


def _check_access_log(directory: Path, log: Path) -> int:
    """Compare the access log with the known answer; a stopped crawl may only lack pages."""
    from bigcrawl_simweb.__main__ import main as simweb

    is_finished, may_repeat = asyncio.run(_read_crawl_state(SIMWEB_NAME))
    arguments = ["--state", str(directory), "--log", str(log), "--delay", str(SIMWEB_DELAY_S)]
    arguments += ["--repeats", str(may_repeat)]
    if not is_finished:
        arguments.append("--unfinished")
    killed = f"; nodes were killed, with {may_repeat} URLs in process at most" if may_repeat else ""
    print(f"checking the server's own log against the known answer{killed}:")
    return simweb(["check", *arguments])


async def _read_crawl_state(name: str) -> tuple[bool, int]:
    server = EmbeddedServer((STATE / name / "redis").absolute())
    client = RedisClient(server.start())
    try:
        finished, may_repeat = await client.command("HMGET", CrawlKeys(name).crawl, "finished", MAY_REPEAT)
        return bool(finished), max(0, int(may_repeat or 0))
    finally:
        await client.close()
        server.leave()


def _seeds_of(directory: Path) -> str:
    from bigcrawl_simweb.model.state import load_web

    saved = load_web(directory)
    assert saved is not None
    return "".join(f"{url}\n" for url in saved.web().seeds(saved.port))


def _run_scrapy(seeds: str, name: str, settings: dict[str, str], arguments: list[str], *, fresh: bool) -> int:
    """Run `scrapy crawl broad`. Ctrl-C reaches it too, and this waits for its clean end."""
    chosen = {"BIGCRAWL_CRAWL": name, "BIGCRAWL_STATE_DIR": str(STATE.absolute()), **settings}
    chosen["BIGCRAWL_WARC_DIR"] = str((WARC / name).absolute())
    if fresh:
        chosen["BIGCRAWL_FRESH"] = "1"
    command = [sys.executable, "-m", "scrapy", "crawl", "broad", "-a", f"seeds={seeds}"]
    for setting, value in chosen.items():
        command += ["-s", f"{setting}={value}"]
    environment = {**os.environ, "SCRAPY_SETTINGS_MODULE": "bigcrawl.settings"}
    crawl = subprocess.Popen([*command, *arguments], env=environment)
    while True:
        try:
            status = crawl.wait()
            break
        except KeyboardInterrupt:
            continue
    if status < 0:
        print(f"bigcrawl: the crawl was killed by signal {-status}; the same command continues", file=sys.stderr)
        return 128 - status  # as in a shell
    return status


if __name__ == "__main__":
    sys.exit(main())
