"""Capture, record, build, validate and report evidence about LLM serving.

Data flows one way: capture -> record -> build -> validate -> report. The judge of a package is not in
here: it is the set of standard-library scripts under `verifiers/`, which this package only runs.
"""

__version__ = "0.1.0"
