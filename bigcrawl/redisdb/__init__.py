"""Redis: everything that imports `redis`. It knows keys, scripts and servers, not the frontier."""
