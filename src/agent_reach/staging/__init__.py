"""Files in: what has a `source` is fetched, globs are expanded, writable grants that are missing are made."""
