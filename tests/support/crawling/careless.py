"""A command of somebody whose files everybody may read and write.

`python -m tests.support.crawling.careless MODULE WORDS`.
"""

from __future__ import annotations

import os
import runpy
import sys

if __name__ == "__main__":
    os.umask(0)
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
