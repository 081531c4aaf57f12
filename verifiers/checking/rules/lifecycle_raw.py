"""x"""
EVIDENCE_CHECKS = ()
RAW_CONTROL = ()
def checked_places(record, names): return []
