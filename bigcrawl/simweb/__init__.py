"""A simulated web with a known answer: for tests, benchmarks and users' own spiders.

`Web` (web.py) is the web itself, a pure function of its arguments: any page of any host can be asked for,
none is stored, and `Web.reachable` knows what a crawl must find. `server.py` serves one on loopback
addresses, a host each, and logs every request; `checker.py` holds such a log, or any other server's, to the
answer and to the rules of politeness. On the command line:

    python -m bigcrawl.simweb serve --state DIR --log FILE
    python -m bigcrawl.simweb seeds --state DIR
    python -m bigcrawl.simweb check --state DIR --log FILE --delay 0.25

How a page comes about: `resources.py` says what a host has and under which paths, `graph.py` who links to
whom, `robots.py` what is forbidden where, `spelling.py` how links are written, `markup.py` the HTML around
them.
"""

from __future__ import annotations

from bigcrawl.simweb.checker import Exchange, Report, Rules, check
from bigcrawl.simweb.web import Page, Web

__all__ = ["Exchange", "Page", "Report", "Rules", "Web", "check"]
