"""Helpers for users and developers."""
