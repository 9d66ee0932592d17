"""A simulated web with a known answer, for tests, benchmarks and users' own spiders. docs/simweb.md is its manual.

`Web` (web.py) is the web itself, a pure function of its arguments. Any page of any host can be requested, none is
stored, and `Web.expected` knows what a crawl must find. `server.py` serves it on loopback addresses and logs every
request; `resolver.py` resolves its names. `checker.py` checks such a log, or any other server's, against the known
answer and the rules of politeness. `UniformWeb` (uniform.py) is a similar web for benchmarks, endless and without a
known answer; `TopicalWeb` (topical.py) is one for focused crawls, whose pages are about topics.

How an answer is made: `population.py` defines the hosts, their sizes and popularity, and `names.py` their names.
`resources.py` defines what a host has and under which paths, `graph.py` the links. `robots.py` and `robots_kinds.py`
define what is forbidden, `outages.py` when a host is away. `spelling.py` writes the links, `markup.py` the HTML around
them, and `answers.py` assembles the answer. Odd things are in tables: `exhibits/table.py` and the modules it names.
`expectations.py` and `reachability.py` compute the known answer.
"""

from __future__ import annotations

from bigcrawl.simweb.basics.answer import Answer
from bigcrawl.simweb.check.checker import Exchange, Report, Rules, check
from bigcrawl.simweb.model.web import Web

__all__ = ["Answer", "Exchange", "Report", "Rules", "Web", "check"]
