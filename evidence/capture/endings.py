"""Which servers close a connection at once behind a response, so that the middle of a stream may lie unread.

After the first text of a stream only its end is measured, and to be woken for every event between costs more
processor time than all else that a client does. So the kernel is asked to wake the reader for many bytes or for the
end alone (SO_RCVLOWAT). The price: the kernel joins what lies unread and keeps the last stamp, that of the close
included, so a total is then late by as long as the server takes from its last byte to its close. That is why a
server must first be seen to close within `AT_ONCE_NS`, in an exchange read event by event; every 64th is read so
again, and shows whether it still does. One that keeps its connections is read event by event always.
"""

from __future__ import annotations

import socket

from evidence.capture.request import Target

AT_ONCE_NS = 500_000
PROOF_EVERY = 64
MANY_BYTES = 8192


class Manners:
    """How a server ends its connections. `closes` says whether it was seen to close at once."""

    def __init__(self) -> None:
        self.closes = False
        self._asked = 0

    def may_wait(self) -> bool:
        """Whether the next exchange may leave the middle of its stream unread."""
        self._asked += 1
        return self.closes and self._asked % PROOF_EVERY > 0

    def note(self, ended: bool, since_ns: int) -> None:
        """Learn from a response that was read eagerly: whether its connection, not to be used again, had ended `since_ns` later.

        An end that is there in time proves; a connection still open after that time disproves; else nothing is known.
        """
        in_time = since_ns <= AT_ONCE_NS
        if ended and in_time:
            self.closes = True
        elif not ended and not in_time:
            self.closes = False


Known = dict[Target, Manners]
"""What was seen of servers, to be kept for as long as they are the same ones."""


def has_ended(connection: socket.socket) -> bool:
    """True when the other side has closed and no byte is left to read."""
    try:
        return not connection.recv(1, socket.MSG_PEEK)
    except OSError:
        return False


def await_many(connection: socket.socket) -> bool:
    """From now on `connection` is readable when it holds many bytes, or its end, or the kernel is short of room.

    False where the kernel knows no such thing.
    """
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, MANY_BYTES)
    except OSError:
        return False
    return True
