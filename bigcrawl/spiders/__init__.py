"""Spiders: `broad.BroadSpider` crawls all that its seeds lead to, and is a base class for those of users."""
