"""The pages as a site: every page has its place in it, and no link leads nowhere."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.system
PROJECT = Path(__file__).resolve().parents[2]


def build(docs: Path, out: Path, builder: str) -> subprocess.CompletedProcess[str]:
    """What `make site` runs; `dummy` reads all pages and follows all links as `html` does, and writes nothing."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", builder]
    places = [str(path) for path in ("-d", out / "doctrees", docs, out / "site")]
    return subprocess.run([*command, *places], capture_output=True, text=True, check=False, cwd=PROJECT)


def test_pages_have_their_places_and_no_link_leads_nowhere(tmp_path: Path) -> None:
    """The pages as they are pass without a warning."""
    done = build(PROJECT / "docs", tmp_path, "dummy")
    assert done.returncode == 0, done.stderr


def test_pages_are_written_and_a_wrong_link_is_told(tmp_path: Path) -> None:
    """A wrong link and a wrong anchor among a few pages; decisions stand below the architecture."""
    docs = tmp_path / "docs"
    for name in ("conf.py", "index.md", "architecture.md", "decisions/0001-robots-txt-in-the-place-of-a-taken-url.md"):
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / "docs" / name, docs / name)
    (docs / "lost.md").write_text("# Lost\n\n[a](nowhere.md) [b](architecture.md#no-such-heading)\n")
    done = build(docs, tmp_path, "html")
    assert done.returncode != 0
    for fault in ("lost.md:3: WARNING: 'myst' cross-reference target not found: 'nowhere.md'", "no-such-heading"):
        assert fault in done.stderr
    page = tmp_path / "site" / "architecture.html"
    assert "decisions/0001-robots-txt-in-the-place-of-a-taken-url.html" in page.read_text()
