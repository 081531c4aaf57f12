"""What no verifier can prove from a package alone; shown by `--help`."""

NOT_PROVED = """\
what this does not prove:
  - that the run took place: a wholly invented run whose bodies, ledgers, times and hashes agree looks the same;
  - that the times are true: a body carries no time stamps, so times are recorded measurements, checked for
    order, bounds and agreement between client and recorder, never recomputed;
  - that the memory figures are true: a snapshot is what its source said, not peak memory of a request;
  - that the engine, model or device was the one named: names and versions are reported or declared;
  - that nothing was left out before packaging: an attempt or comparison that was never recorded leaves no gap;
  - prefill/decode summaries: they were reviewed, and public bytes cannot reconstruct them;
  - that a setting is the best one, that it holds for other prompts, loads or machines, or any service level.

exit codes: 0 verified, 1 rejected, 2 could not run, 3 a mutation control was not rejected
"""
