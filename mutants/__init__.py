"""Mutants of the code that judges: `python -m mutants` alters it, one place at a time, and asks whether a test sees it.

The operators are those of cosmic-ray (in the extra `dev`). `targets` is the table of what is altered and which
tests must see it, `sampling` lists the places and chooses a sample that a seed fixes, `trial` runs the tests on a
copy of the tree. `survivors.toml` says of every mutant that no test sees why it may live.
"""
