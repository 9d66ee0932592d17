"""`python -m benchmarks.recrawl`: what visits cost, and what they are good for.

1. Crawls a simulated web twice through by the spider `recrawl`, and compares the bytes of bodies by the server's log.
   Promised: the second cycle's are at most 1 % of the first's.
2. Estimates rates of change from 30 visits of pages that change at known rates. Promised: the median error is at most
   20 %, and there is no bias.
3. Keeps pages of known rates fresh by the policies, on a clock of their own, from estimates alone. Promised: with
   `freshness` within 5 % of the optimum for as many visits, and above what equal visits for all would give.

4. Watches a page that changes once in two hours, with what its site says in a sitemap and without, and a page that
   never changes, whose site says that it always does. Promised: the median change is seen within 20 minutes if the site
   says so, and with `quality` a lie brings no more visits than the median page has.

The exit status is 1 if a promise was missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from benchmarks.crawl.report import aligned, say
from benchmarks.recrawl.cycles import cycles_of
from benchmarks.recrawl.hints import LONGEST_S, SHORTEST_S, Site, news, still
from benchmarks.recrawl.simulation import DAY_S, drawn_rates, estimates, optimum, simulated, uniform
from bigcrawl.revisiting.allocation import KNOWN_FROM
from bigcrawl.revisiting.change_rate import with_comparison
from bigcrawl.revisiting.policies import RevisitPolicy, WaitBounds

BODIES_MAX: Final = 0.01
COVERED_LEAST: Final = 0.99  # a visit that failed, as on a busy machine, is none
ERROR_MAX: Final = 0.20
BIAS_MAX: Final = 0.05
BELOW_OPTIMUM_MAX: Final = 0.05
INTERVALS: Final = {"a day": (DAY_S,), "half a day to two days": (DAY_S // 2, DAY_S, 2 * DAY_S)}
NEWS: Final = 20
RULES: Final = ("freshness", "change-rate", "periodic")


def main() -> int:
    """Do what was asked for, and say whether promises were kept."""
    options = _parser().parse_args()
    kept = [_estimates(options), _freshness(options), _hints(options)]
    if not options.without_crawl:
        kept.append(_bodies(options))
    return 0 if all(kept) else 1


def _bodies(options: argparse.Namespace) -> bool:
    with tempfile.TemporaryDirectory(prefix="bigcrawl-recrawl-") as directory:
        found = cycles_of(Path(directory), options.hosts, options.pages)
    share = found.later_bytes / found.first_bytes
    say(f"{found.pages:,} pages, {found.visited_twice:,} of them visited twice")
    say(f"{found.first_bytes:,} bytes of bodies in the first cycle, {found.later_bytes:,} in the second")
    is_whole = found.visited_twice >= COVERED_LEAST * found.pages
    return _said("of the first cycle's bodies", share, share <= BODIES_MAX and is_whole)


def _estimates(options: argparse.Namespace) -> bool:
    kept = True
    for name, intervals_s in INTERVALS.items():
        median, bias = estimates(options.estimates, 30, intervals_s, options.seed)
        say(f"{options.estimates:,} pages, 30 visits each, {name} apart: mean error {bias:+.1%}")
        kept &= _said("median error of the rate", median, median <= ERROR_MAX and abs(bias) <= BIAS_MAX)
    return kept


def _freshness(options: argparse.Namespace) -> bool:
    rates = drawn_rates(options.simulated, options.seed)
    rows = [["policy", "visits a day", "fresh", "optimum", "equal visits"]]
    found = {}
    for rule in RULES:
        fresh, visits = simulated(rule, rates, options.days, options.days // 2, options.seed)
        best, equal = optimum(rates, visits), uniform(rates, visits)
        found[rule] = (fresh, best, equal)
        rows.append([rule, f"{visits:.2f}", *(f"{part:.3f}" for part in (fresh, best, equal))])
    say(f"{options.simulated:,} pages over {options.days} days, measured in the second half:")
    say(*aligned(rows))
    fresh, best, equal = found["freshness"]
    below = 1 - fresh / best
    return _said("below the optimum", below, below <= BELOW_OPTIMUM_MAX and fresh > equal)


def _hints(options: argparse.Namespace) -> bool:
    days = options.days // 4
    rows = [["usual wait", "its site says", "visits a day", "minutes from a change to its visit"]]
    delay_s = 0.0
    for usual_s, name in ((3_600, "an hour"), (DAY_S, "a day")):
        for says, site in (("nothing", Site()), ("hourly, and when", Site(3_600, tells=True))):
            found = [news("change-rate", usual_s, site, days, options.seed + at) for at in range(NEWS)]
            visits, delay_s = (fmean(values) for values in zip(*found, strict=True))
            rows.append([name, says, f"{visits:.1f}", f"{delay_s / 60:.0f}"])
    say(f"{NEWS} pages that change once in two hours, over {days} days, `change-rate`:")
    say(*aligned(rows))
    rows = [["policy", "its site says", "visits in a year"]]
    counts = {}
    for rule in ("change-rate", "quality"):
        for says, site in (("nothing", Site()), ("always, and just now", Site(1, tells=True, lies=True))):
            policy = RevisitPolicy(rule, WaitBounds(DAY_S, SHORTEST_S, LONGEST_S))
            for _ in range(KNOWN_FROM):
                policy.wait_s(with_comparison((), DAY_S, changed=True), DAY_S)
            counts[rule, says] = 365 * still(policy, site, 365).visits_a_day
            rows.append([rule, says, f"{counts[rule, says]:.0f}"])
    say("A page that never changes, among others that change once a day:")
    say(*aligned(rows))
    kept = _said("of 20 minutes until a change is seen", delay_s / 1_200, delay_s <= 1_200)
    lie = counts["quality", "always, and just now"] / 365
    return _said("of the median page's visits for a lie", lie, lie <= 1) and kept


def _said(what: str, part: float, is_kept: bool) -> bool:
    say(f"{part:.2%} {what}{'' if is_kept else ': MISSED'}")
    return is_kept


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recrawl", description=__doc__)
    numbers: dict[str, tuple[int, str]] = {
        "hosts": (200, "hosts of the crawled web"),
        "pages": (100, "pages of each"),
        "estimates": (2_000, "pages whose rates are estimated"),
        "simulated": (1_000, "pages that are kept fresh"),
        "days": (120, "for so many days, half of them to learn"),
        "seed": (1, "of all drawing"),
    }
    for name, (default, text) in numbers.items():
        more: dict[str, Any] = {"type": int, "default": default, "help": f"{text} ({default:,})"}
        parser.add_argument(f"--{name}", **more)
    parser.add_argument("--without-crawl", action="store_true", help="leave the crawl out")
    return parser


if __name__ == "__main__":
    sys.exit(main())
