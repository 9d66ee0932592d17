"""Builds the reader of links in C where there is a compiler; pyproject.toml says everything else.

scrapyd-client builds eggs with `setup.py bdist_egg`; they stay zipped and go to other machines, so they have none.
"""

from __future__ import annotations

import sys
import sysconfig

from setuptools import Extension, setup

# One build for all Pythons, by the stable ABI, which free-threaded ones lack.
IS_COMPILED = (
    sys.implementation.name == "cpython"
    and not sysconfig.get_config_var("Py_GIL_DISABLED")
    and "bdist_egg" not in sys.argv
)
COMPILED = Extension(
    "bigcrawl.scan.compiled",
    ["bigcrawl/scan/compiled.c"],
    define_macros=[("Py_LIMITED_API", "0x030B0000")],
    py_limited_api=True,
    optional=True,  # without a compiler, its twin in Python runs
)

setup(
    ext_modules=[COMPILED] if IS_COMPILED else [],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if IS_COMPILED else {},
)
