"""Which servers close a connection at once behind a response, so that the middle of a stream may lie unread.

After the first text of a stream only its end is measured, and to be woken for every event between costs more
processor time than all else that a client does. So the kernel is asked to wake the reader for many bytes or for the
end alone (SO_RCVLOWAT). The price: the kernel joins what lies unread and keeps the last stamp, that of the close
included, so a total is then late by as long as the server takes from its last byte to its close. That is why a
server must first be seen to close within `AT_ONCE_NS`, in an exchange read event by event; every 32nd is read so
again, and shows whether it still does. One that keeps its connections is read event by event always.
"""

from __future__ import annotations

import socket
from collections.abc import Hashable

AT_ONCE_NS = 500_000
PROOF_EVERY = 32
MANY_BYTES = 8192


class Endings:
    """What a batch has seen of the ends of connections, by server."""

    __slots__ = ("_asked",)

    def __init__(self) -> None:
        self._asked: dict[Hashable, int] = {}

    def may_wait(self, server: Hashable) -> bool:
        """Whether the next exchange with `server` may leave the middle of its stream unread."""
        asked = self._asked.get(server)
        if asked is None:
            return False
        self._asked[server] = asked + 1
        return asked % PROOF_EVERY > 0

    def closes(self, server: Hashable) -> bool:
        """Whether `server` was seen to close at once."""
        return server in self._asked

    def note(self, server: Hashable, ended: bool, since_ns: int) -> None:
        """Learn from a response that was read eagerly: whether its connection, not to be used again, had ended `since_ns` later.

        An end that is there in time proves; a connection still open after that time disproves; else nothing is known.
        """
        in_time = since_ns <= AT_ONCE_NS
        if ended and in_time:
            self._asked.setdefault(server, 1)
        elif not ended and not in_time:
            self._asked.pop(server, None)


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
