"""The simulated web is found where it was first."""

from __future__ import annotations

import subprocess
import sys


def test_the_first_names_of_the_simulated_web_are_kept() -> None:
    """As modules, as a package, and on the command line."""
    program = (
        "import bigcrawl.simweb, bigcrawl_simweb\n"
        "from bigcrawl.simweb.features import ALL\n"
        "from bigcrawl.simweb.web import Web\n"
        "assert bigcrawl.simweb.Web is Web is bigcrawl_simweb.Web\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    command = [sys.executable, "-m", "bigcrawl.simweb", "list"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "/fair/" in listed.stdout
