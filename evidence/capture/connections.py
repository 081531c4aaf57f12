"""Connections before and after an exchange: where a target is, whether an idle one can be used, what went wrong with one."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
from functools import lru_cache

from evidence.capture.request import Target

Address = tuple[socket.AddressFamily, tuple[object, ...]]


@lru_cache(maxsize=64)
def _numeric(host: str, port: int) -> Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    if address.version == 4:
        return socket.AF_INET, (str(address), port)
    return socket.AF_INET6, (str(address), port, 0, 0)


async def resolve(target: Target) -> list[Address] | OSError:
    """Return the addresses of a target, a numeric one without asking anybody, or why there are none."""
    numeric = _numeric(target.host, target.port)
    if numeric is not None:
        return [numeric]
    try:
        found = await asyncio.get_running_loop().getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except OSError as error:
        return error
    return [(family, address) for family, _kind, _protocol, _name, address in found]


def is_quiet(connection: socket.socket) -> bool:
    """True while an idle connection is open and holds no bytes that nobody asked for."""
    try:
        connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def describe(error: OSError) -> str:
    """Say what went wrong on a socket, the same on every machine."""
    name = errno.errorcode.get(error.errno or 0, type(error).__name__)
    return f"{name.lower()}: {(error.strerror or str(error)).lower()}"
