"""What tests of the client ask, and a client in a hurry."""

from __future__ import annotations

import socket
from typing import Any

from cads_agents.llm.client import Client

KEY = "topsecret-key-0123"
MESSAGES = [
    {"role": "system", "content": "You screen genes."},
    {"role": "user", "content": "Choose among TP53 MYC RB1 CDK4."},
]


def client_of(server: Any, **settings: Any) -> Client:
    """A client of a server that gives up soon."""
    quick = {"timeout_s": 20.0, "retries": 2, "backoff_s": 0.01, "longest_wait_s": 3.0}
    return Client({"model": "fake", "base_url": server.url}, **(quick | settings))


def free_port() -> int:
    """A port at which nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
