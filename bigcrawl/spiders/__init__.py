"""Spiders: `broad.BroadSpider` crawls all that its seeds lead to, `focused.FocusedSpider` what is about a topic first.

Both are base classes for spiders of users.
"""
