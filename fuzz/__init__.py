"""Fuzz targets: `python -m fuzz --seconds 10` tries every reader with generated and mutated input.

A target is one row of `targets.TARGETS`: a name, a function of bytes, seeds. The function may raise the stated
refusal and nothing else; every other exception, a run of more than a second and memory over the limit are faults,
and the input that shows one is kept under `fuzz/corpus/<target>/fault-<hash>`. With atheris installed the search
follows coverage; without it, bytes are mutated from the corpus, which is always there.
"""
