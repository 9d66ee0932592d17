"""Adopts settings of Scrapy and scrapy-redis that a project has set, or reports that they have no effect.

To add such a setting, add a line to `INSTEAD` and to docs/differences.md.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final

from scrapy.settings import SETTINGS_PRIORITIES, Settings

from bigcrawl.scheduler.rules.delay_rules import parse_delay

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

DOWNLOAD_MAXSIZE = 16 << 20
"""With Scrapy's default of 1 GiB, 64 endless bodies would exceed the memory of most machines."""

_FINGERPRINTER: Final = "REQUEST_FINGERPRINTER_CLASS"
_SEEN = "a URL's canonical form is what was seen; dont_filter queues a request each time"
_QUEUES = "the frontier queues by host and priority; a request's priority, and BIGCRAWL_PRIORITY_BIAS say who is next"
_KEYS = "the keys of a crawl have its name, BIGCRAWL_CRAWL"
_DELAY = "see BIGCRAWL_HOST_DELAY and BIGCRAWL_DELAY_RULES"

INSTEAD: Final = {
    "AUTOTHROTTLE_ENABLED": "BIGCRAWL_DOWNLOAD_FACTOR makes a host's delay a multiple of its answers' time",
    "CONCURRENT_REQUESTS_PER_DOMAIN": "BIGCRAWL_HOST_CONNECTIONS is how many connections a host has",
    "CONCURRENT_REQUESTS_PER_IP": "BIGCRAWL_SERVER_DELAY keeps starts at one address apart",
    "DOWNLOAD_DELAY_JITTER": _DELAY,
    "RANDOMIZE_DOWNLOAD_DELAY": _DELAY,
    "DUPEFILTER_CLASS": _SEEN,
    "DUPEFILTER_DEBUG": "`scrapy frontier explain URL` says what became of a URL",
    _FINGERPRINTER: "BIGCRAWL_FINGERPRINTS has requests told apart as it does",
    "JOBDIR": "BIGCRAWL_STATE_DIR is where a crawl is kept, and the same command resumes it",
    "ROBOTSTXT_PARSER": "bigcrawl reads robots.txt itself; see BIGCRAWL_ROBOTS",
    "ROBOTSTXT_USER_AGENT": "the first word of USER_AGENT is the name that robots.txt rules are matched with",
    "SCHEDULER_DEBUG": "`scrapy frontier status` says what waits",
    "SCHEDULER_DISK_QUEUE": _QUEUES,
    "SCHEDULER_DUPEFILTER_KEY": _KEYS,
    "SCHEDULER_FLUSH_ON_START": "BIGCRAWL_FRESH begins a crawl anew",
    "SCHEDULER_IDLE_BEFORE_CLOSE": "BIGCRAWL_CLOSE says when a crawl ends, max_idle_time of a spider when it does",
    "SCHEDULER_MEMORY_QUEUE": _QUEUES,
    "SCHEDULER_PERSIST": "a crawl always goes on; BIGCRAWL_FRESH begins it anew",
    "SCHEDULER_PRIORITY_QUEUE": _QUEUES,
    "SCHEDULER_QUEUE_CLASS": _QUEUES,
    "SCHEDULER_QUEUE_KEY": _KEYS,
    "SCHEDULER_SERIALIZER": "requests are stored as msgpack",
    "SCHEDULER_START_DISK_QUEUE": _QUEUES,
    "SCHEDULER_START_MEMORY_QUEUE": _QUEUES,
}
"""What to use instead of a setting of Scrapy, or of scrapy-redis, that has no effect."""

_DEFAULTS: Final = Settings()
_ATTRIBUTES: Final = {
    "download_delay": "DOWNLOAD_DELAY",
    "max_concurrent_requests": "CONCURRENT_REQUESTS_PER_DOMAIN",
}
_AS_EVER: Final = {"CONCURRENT_REQUESTS_PER_DOMAIN": 1}  # a value that describes what is done anyway
_SLOT_INSTEAD: Final = {
    "concurrency": INSTEAD["CONCURRENT_REQUESTS_PER_DOMAIN"],
    "jitter": _DELAY,
    "randomize_delay": _DELAY,
}


def adopt_attributes(settings: BaseSettings, spider: object) -> None:
    """Set settings from attributes of the spider, which Scrapy does too late, after the add-on."""
    below_spider = SETTINGS_PRIORITIES["spider"] - 1  # so that Scrapy still says what to write instead
    for name, setting in _ATTRIBUTES.items():
        if hasattr(spider, name) and (settings.getpriority(setting) or 0) <= below_spider:
            settings.set(setting, getattr(spider, name), below_spider)


def log_unused_settings(settings: BaseSettings) -> None:
    """Log, for each project setting that has no effect, what to use instead."""
    for name, instead in INSTEAD.items():
        as_ever = (_DEFAULTS.get(name), _AS_EVER.get(name))
        if name == _FINGERPRINTER and (settings.getbool("BIGCRAWL_FINGERPRINTS") or not _is_projects(settings, name)):
            continue
        if is_set(settings, name) and settings.get(name) not in as_ever:
            _log_unused(name, instead)


def log_delay(settings: BaseSettings, host_delay_s: float) -> None:
    delay = settings.get("DOWNLOAD_DELAY")
    if not is_set(settings, "DOWNLOAD_DELAY"):
        return
    if float(delay) == host_delay_s:
        text = "DOWNLOAD_DELAY = %(delay)s is kept as BIGCRAWL_HOST_DELAY, by the frontier and for all nodes together"
        logger.info(text, {"delay": delay})
    else:
        _log_unused(f"DOWNLOAD_DELAY = {delay}", f"a host rests {host_delay_s:g} s (BIGCRAWL_HOST_DELAY)")


def with_slots(settings: BaseSettings, rules: Mapping[str, Mapping[str, object]]) -> dict[str, Mapping[str, object]]:
    """Return the delay rules with those of DOWNLOAD_SLOTS added, and log the effect of each slot."""
    found = dict(rules)
    for name, slot in settings.getdict("DOWNLOAD_SLOTS").items():
        where = f"DOWNLOAD_SLOTS[{name!r}]"
        if not _is_host(name):
            _log_unused(where, "queues are by host; BIGCRAWL_GROUP and BIGCRAWL_GROUP_DELAY space URLs of your choice")
            continue
        for key, value in slot.items():
            if key != "delay":
                _log_unused(f"{where}: {key} = {value}", _SLOT_INSTEAD.get(key, _DELAY))
            elif name in rules:
                _log_unused(f"{where}: delay = {value}", "BIGCRAWL_DELAY_RULES has a rule of that name")
            else:
                parse_delay({"delay": value}, where)
                found[name] = {"delay": value}
                text = "%(where)s: delay = %(delay)s is kept as one of BIGCRAWL_DELAY_RULES"
                logger.info(text, {"where": where, "delay": value})
    return found


def crawl_name_of(spider: str) -> str:
    """Return the name for a spider's crawl. Two spiders of a project need two, or they would share their URLs."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", spider).lstrip("._-")[:100] or "crawl"


def is_set(settings: BaseSettings, name: str) -> bool:
    """Return whether project, spider or command line have set a setting."""
    return (settings.getpriority(name) or 0) > 0


def _is_projects(settings: BaseSettings, name: str) -> bool:
    """Return whether the project or command line, not only an add-on, has set a setting."""
    return (settings.getpriority(name) or 0) > SETTINGS_PRIORITIES["addon"]


def _is_host(name: str) -> bool:
    return "." in name or ":" in name or name == "localhost"


def _log_unused(what: str, instead: str) -> None:
    logger.warning("%(what)s has no effect: %(instead)s", {"what": what, "instead": instead})
