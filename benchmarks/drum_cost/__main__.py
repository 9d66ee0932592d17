"""`python -m benchmarks.drum_cost`: bytes moved for a byte offered, modelled and measured. Options: --help."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.crawl.machine import describe_machine
from benchmarks.crawl.report import aligned, say
from benchmarks.drum_cost import tables
from benchmarks.drum_cost.beyond import PerUrl
from benchmarks.drum_cost.methods import METHODS
from benchmarks.drum_cost.redis_log import log_share
from benchmarks.drum_cost.scale import MIDDLE, REAL, SMALL
from benchmarks.drum_cost.trial import run_trial

if TYPE_CHECKING:
    from benchmarks.drum_cost.scale import Scale
    from benchmarks.drum_cost.trial import Trial

_SCALES: Final = {"small": SMALL, "middle": MIDDLE, "real": REAL}
_LOGGED_URLS: Final = 60_000
_OURS: Final = "ours"
_DRUMS: Final = frozenset({"drum", "tiered", "ours"})


def main() -> int:
    """Print the tables and write them; an exception when a method told other URLs than the new ones."""
    options = _parser().parse_args()
    trials = _scaled_trials(options)
    ours = [trial for trial in trials["scaled"] if trial.method == _OURS]
    if options.real:
        trials["real"] = _real_trials(options)
        ours += [trial for trial in trials["real"] if trial.method == _OURS]
    _tell("measured, everything scaled down: alpha (formula)", tables.measured(trials["scaled"]))
    _tell("where the bytes go", tables.by_part(trials["scaled"]))
    if options.real:
        _tell("measured at R = 1 GB: alpha (formula)", tables.measured(trials["real"]))
        _tell("where the bytes go", tables.by_part(trials["real"]))
    if ours:
        _tell_models(PerUrl.of(ours[-1]), ours[-1])
    redis_share = log_share(_LOGGED_URLS)
    say(f"apart from all this, Redis' log of URLs on their way to DRUM: {redis_share:.3f} bytes a byte of text")
    told = {
        "machine": describe_machine(),
        "scales": {name: asdict(scale) for name, scale in _SCALES.items()},
        "redis_log": redis_share,
        "trials": {name: [_as_json(trial) for trial in found] for name, found in trials.items()},
    }
    options.json.write_text(json.dumps(told, indent=1) + "\n")
    say("", f"written: {options.json}")
    return 0


def _scaled_trials(options: argparse.Namespace) -> dict[str, list[Trial]]:
    scale = _SCALES[options.scale]
    return {"scaled": [_trial(name, count, scale, options) for count in options.keys for name in options.methods]}


def _real_trials(options: argparse.Namespace) -> list[Trial]:
    counts = {name: options.real_keys if name in _DRUMS else options.real_keys_others for name in options.methods}
    return [_trial(name, count, REAL, options) for name, count in counts.items()]


def _trial(name: str, count: int, scale: Scale, options: argparse.Namespace) -> Trial:
    directory = Path(tempfile.mkdtemp(prefix="bigcrawl-drum-cost-", dir=options.directory))
    try:
        trial = run_trial(name, count, scale, directory)
    finally:
        shutil.rmtree(directory)
    merges = f"{trial.merges} merges, {trial.seconds:.0f} s"
    say(f"{METHODS[name].title}, {count:,} URLs: {trial.alpha:.4f}, formula {trial.model:.4f}; {merges}")
    return trial


def _tell_models(per_url: PerUrl, source: Trial) -> None:
    say("", f"bigcrawl's columns below are modelled: text, tuple and queue as in its run of {source.offered:,} URLs")
    _tell("Table 2, R = 1 GB, D = 4.39 TB: formula (paper)", tables.table_2(per_url))
    _tell("From the paper's DRUM to bigcrawl's, under Table 2's conditions", tables.differences(per_url))
    _tell("Table 3, D = max(pHn, 1 TB): formula (paper)", tables.table_3(per_url))
    _tell("Theorem 3, 8T pages, R = 8 GB, 101.25 MB/s", tables.theorem_3(per_url))
    say("", *tables.remarks())


def _tell(title: str, rows: list[tuple[str, ...]]) -> None:
    say("", title, *aligned(rows))


def _as_json(trial: Trial) -> dict[str, Any]:
    moved = {part: {"read": moved.read, "written": moved.written} for part, moved in trial.moved.items()}
    return {**asdict(trial), "moved": moved, "alpha": trial.alpha}


def _counts(text: str) -> list[int]:
    return [int(float(part)) for part in text.split(",")]


def _count(text: str) -> int:
    return int(float(text))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drum_cost", description=__doc__)
    add = parser.add_argument
    add("--keys", type=_counts, default=_counts("1e5,3e5,1e6"), metavar="N,...", help="URLs; default 1e5,3e5,1e6")
    add("--scale", choices=("small", "middle"), default="small", help="R = 128 KB, or 1 MB; default small")
    add("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="default: all")
    add("--real", action="store_true", help="at R = 1 GB too: hours, and 40 GB of disk")
    add("--real-keys", type=_count, default=10**9, metavar="N", help="URLs for the kinds of DRUM; default 1e9")
    add("--real-keys-others", type=_count, default=10**8, metavar="N", help="for the other two; default 1e8")
    add("--directory", type=Path, metavar="DIR", help="where the files go, a real disk; default: temporary")
    add("--json", type=Path, default=Path("drum_cost.json"), metavar="FILE", help="default drum_cost.json")
    return parser


if __name__ == "__main__":
    sys.exit(main())
