"""Lifecycle experiments: harnesses that leave raw events, and the records derived from them (docs/lifecycle.md)."""
