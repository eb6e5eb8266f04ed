"""The life of a private fit: its context, callers, progress and findings."""
