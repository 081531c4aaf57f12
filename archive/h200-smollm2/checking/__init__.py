"""The judge: rules that decide whether an evidence package holds, on the standard library alone."""
