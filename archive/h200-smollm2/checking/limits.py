"""What no verifier can prove from a package alone; shown by `--help`. The long form is docs/what-this-does-not-prove.md."""

NOT_PROVED = """\
what a verified package does not prove:
   1. That the run took place.
      a run invented as a whole, all of it coherent, looks like one that took place;
   2. The times.
      bodies carry no client clock: times are checked for what is possible, not for truth;
   3. The memory figures.
      a snapshot is one reading at one moment, not peak request memory;
   4. That the engine was the one named.
      version, arguments and hashes are recorded; answers do not show who gave them;
   5. That nothing was left out before the package was made.
      a run that was thrown away whole leaves no trace;
   6. That the proxy saw all traffic.
      traffic that went round client and recorder is invisible to both;
   7. Reviewed summaries.
      prefill/decode summaries were reviewed; public bytes cannot reconstruct them;
   8. Withheld controls.
      a withheld response is known by hash, length and reason alone;
   9. Retained evidence of lifecycle records.
      without their bundle, its hashes are declarations;
  10. Anything synthetic.
      what the embedded engine answers says nothing about a model, a GPU or an engine;
  11. More than was measured.
      no optimum, ranking, accuracy, other capacity or service level follows;
  12. Significance.
      three paired repetitions and fixed gates are a protocol, not a confidence interval;
  13. That the verifier itself is the one you think.
      the copy in an archive came with it: compare it with the repository's;
  14. Words.
      blockers, messages, scopes and notes are the publisher's sentences, and are not derived;
  15. One functional request's time.
      an attempt's clocks are held together in the middle of its requests, not one by one.

exit codes: 0 verified, 1 rejected, 2 could not run, 3 a mutation control was not rejected
"""
