"""A shim for scrapyd-client, which builds eggs with `setup.py bdist_egg`; pyproject.toml says everything."""

from __future__ import annotations

from setuptools import setup

setup()
