"""The pages as a site: every page has its place in it, and no link leads nowhere."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def build(docs: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """What `make site` runs; a second build reads what has changed."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    places = [str(path) for path in ("-d", out / "doctrees", docs, out / "site")]
    return subprocess.run([*command, *places], capture_output=True, text=True, check=False, cwd=PROJECT)


def test_site_is_built_without_a_warning_and_a_wrong_link_is_one(tmp_path: Path) -> None:
    """The pages as they are pass; a wrong link and a wrong anchor are each told."""
    docs = shutil.copytree(PROJECT / "docs", tmp_path / "docs")
    done = build(docs, tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "decisions" / "0001-robots-txt-in-the-place-of-a-taken-url.html").is_file()
    (docs / "lost.md").write_text("# Lost\n\n[a](nowhere.md) [b](settings.md#no-such-heading)\n")
    done = build(docs, tmp_path)
    assert done.returncode != 0
    for fault in ("nowhere.md", "no-such-heading"):
        assert fault in done.stderr
