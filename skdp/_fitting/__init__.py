"""The life of a private fit: its callers, its arguments, its progress and its findings."""
