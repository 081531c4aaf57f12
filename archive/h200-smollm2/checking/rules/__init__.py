"""One file a subject: each names its documents, its checks and the mutations that prove the checks awake."""
