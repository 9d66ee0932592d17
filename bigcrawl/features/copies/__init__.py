"""Copies: pages with the same content as an earlier page, exactly or nearly."""
