"""The dashboard: one page that shows a crawl and steers it, an HTTP face on the actions of `scrapy frontier`.

    access.py    who may ask: Host, Origin, token
    actions.py   which actions may be asked for, and with which options
    figures.py   what no action has: the history from a time on, room on disks
    kept.py      the crawl, open, for what is asked every second or two
    worker.py    the thread that runs them, one at a time, and keeps their results for a second or two
    face.py      requests and answers
    page/        what a browser loads: HTML, CSS and JavaScript, as they are

A node serves it (`extensions.dashboard`), or `scrapy frontier dashboard` (`commands.looking.dashboard`) without one.
The event loop reads requests and writes answers; all that waits or computes is done in the worker's thread.
"""
