"""A real Chromium for tests and pictures. Debian's packages `chromium` and `chromium-driver`."""
