"""Votes: pages' links give priorities and ranks to the URLs that they lead to, even to URLs known already."""
