"""Read-only queries about a crawl, as plain data for commands, dashboard and report.

Every query raises TransientStoreError if Redis does not answer.
"""
