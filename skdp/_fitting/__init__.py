"""The life of a private fit: its context, its callers, its progress and its findings."""
