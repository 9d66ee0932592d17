"""The command that prints sizes and samples."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from random import Random
from typing import TYPE_CHECKING

from bigcrawl_sampling.__main__ import main
from tests.annexes.sampling.test_estimating import links_of_web, walks_over

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_command_prints_sizes_or_a_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the file of a crawl."""
    file = tmp_path / "walks.jsonl"
    steps = [
        step._replace(url=f"http://a.example/{step.asked}")
        for step in walks_over(links_of_web(Random(1)), 60, Random(1))
    ]
    file.write_text("".join(f"{json.dumps(step._asdict())}\n" for step in steps))
    assert main([str(file)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith(f"60 walks of {len(steps)} fetches saw 1,")
    assert [line.partition(":")[0] for line in told[1:]] == ["URLs that links lead to", "pages among them"]
    assert main([str(file), "--sample", "5"]) == 0
    assert len(set(capsys.readouterr().out.splitlines())) == 5


def test_file_that_says_nothing_is_told_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that is not there, or has no steps."""
    (tmp_path / "empty.jsonl").write_text("")
    for name, reason in (("missing.jsonl", "cannot be read"), ("empty.jsonl", "there are 0 walks")):
        assert main([str(tmp_path / name)]) == 1
        told = capsys.readouterr().err
        assert reason in told
        assert told.count("\n") == 1


def test_reader_may_have_enough_of_a_sample(tmp_path: Path) -> None:
    """As `head`."""
    file = tmp_path / "walks.jsonl"
    file.write_text(
        "".join(f"{json.dumps(step._asdict())}\n" for step in walks_over(links_of_web(Random(1)), 60, Random(1)))
    )
    reads, writes = os.pipe()
    os.close(reads)
    command = [sys.executable, "-m", "bigcrawl_sampling", str(file), "--sample", "50"]
    with os.fdopen(writes, "wb") as pipe:
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, check=False, text=True)
    assert (done.returncode, done.stderr) == (0, "")
