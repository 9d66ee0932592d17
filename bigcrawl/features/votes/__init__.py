"""Votes: a page's links give priorities and ranks to the URLs they lead to, even to known ones."""
