"""A proxy that counts what reaches a server, so that a test need not believe a client."""

from __future__ import annotations

import hashlib
import http.client
import json
import socket
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


def fingerprint(messages: Any, seed: Any) -> str:
    """What tells one request from another: messages and generation seed."""
    text = json.dumps([messages, seed], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """Say nothing: clients are killed on purpose."""


class CountingProxy:
    """Passes requests on and keeps a count of each; a context manager.

    Attributes:
        asked: Fingerprints of the prompts that arrived, in order of arrival.
    """

    def __init__(self, base_url: str) -> None:
        """Listen on a port of loopback.

        Args:
            base_url: Of the server, ending in /v1.
        """
        self.asked: list[str] = []
        self._lock = threading.Lock()
        self._upstream = urlsplit(base_url).netloc
        self._server = _QuietServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def base_url(self) -> str:
        """What a client is told."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def count(self) -> int:
        """Prompts that arrived so far."""
        with self._lock:
            return len(self.asked)

    def since(self, start: int) -> Counter[str]:
        """How often each prompt arrived from a place on."""
        with self._lock:
            return Counter(self.asked[start:])

    def __enter__(self) -> CountingProxy:
        """Start to listen."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Else an answer waits for the one before to be acknowledged.
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                self._pass_on(None)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                data = json.loads(body)
                if "messages" in data:
                    with proxy._lock:
                        proxy.asked.append(fingerprint(data["messages"], data.get("seed")))
                self._pass_on(body)

            def _pass_on(self, body: bytes | None) -> None:
                up = http.client.HTTPConnection(proxy._upstream, timeout=120)
                try:
                    headers = {"Content-Type": "application/json"}
                    up.request(self.command, self.path, body, headers)
                    answer = up.getresponse()
                    content, status = answer.read(), answer.status
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)
                except (OSError, http.client.HTTPException):
                    # The server or the client is gone: so is the connection.
                    self.close_connection = True
                    _shut(self.connection)
                finally:
                    up.close()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
