"""What budgets cost on disk, and what they do for the many beside one (IRLbot §6.2).

    python -m benchmarks.beast [--pages N]        disk bytes a page, BEAST beside re-reading everything
    python -m benchmarks.beast --scale [--urls N]  one PLD with nearly all there is, beside 100,000 others

The first runs a simulated crawl twice on real files: with a `Partition` and its over-budget queue, and with the
naive method, two queues of which the second is read whole and split again whenever the first is empty. Every page
has L new URLs, spread evenly over V PLDs of one budget. Counted is what the queues read and write, in bytes as they
are stored, at the seam between queues and file system; one page is one URL admitted. Beside it: Theorems 4 and 5
with the mean bytes of a stored URL as b.
"""

from __future__ import annotations


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)  # noqa: T201 - a command's output is its answer
