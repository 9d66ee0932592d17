"""Spiders that come along: feeds, lists in Redis, pages that are visited again."""
