"""Settings files for a project to begin with: `from bigcrawl.profiles.gentle import *` in settings.py.

Lines below that one change single values.
"""
