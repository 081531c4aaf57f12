"""Other measuring clients, each in an environment of its own."""

from __future__ import annotations

from typing import Any

Peer = Any
PEERS: dict[str, Any] = {}
