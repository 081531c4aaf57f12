"""What all tests stand on."""

import signal

# A shell that starts tests in the background has them ignore SIGINT, and what they start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
