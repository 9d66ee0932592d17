"""An HTTP server and a DNS server for the web, on loopback addresses, and their logs."""
