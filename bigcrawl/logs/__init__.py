"""Formats log lines and other texts, and limits repeated problems; standard library only."""
