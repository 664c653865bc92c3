"""Scripted faults between a client and a server of OpenAI's protocol, on loopback.

`FaultProxy` stands before any server and counts what passes; `FakeServer` builds on the same
`FaultyServer`. Faults are taken in order, one a completion; None lets one pass.
"""

from __future__ import annotations

import contextlib
import email.utils
import hashlib
import http.client
import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

KINDS = (
    "hang", "reset", "status", "cut", "garbage", "wrong_model", "empty", "null_choices",
    "no_choices", "drip", "huge", "content_type", "list_body", "no_usage", "no_reason",
)  # fmt: skip


class Reply(NamedTuple):
    """What a server says: status, headers, body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One thing that goes wrong with one request.

    Attributes:
        kind: One of `KINDS`.
        status: HTTP status of kind "status".
        said: The server's words of kind "status".
        retry_after_s: Sent as Retry-After, as seconds or, with `as_date`, as a date.
        seconds: How long "hang" keeps the connection; between two bytes of "drip".
        size: Bytes of "huge".
        model: What "wrong_model" reports.
    """

    kind: str
    status: int = 500
    said: str = "the engine is dead"
    code: str | None = None
    retry_after_s: float | None = None
    as_date: bool = False
    seconds: float = 0.2
    size: int = 10_000_000
    model: str = "another-model"

    def __post_init__(self) -> None:
        assert self.kind in KINDS, self.kind


Faults = Iterable[Fault | None] | Callable[[int, Mapping[str, Any]], Fault | None]


@dataclass
class Count:
    """What a server was asked and what it answered in full.

    Attributes:
        requests: Completions asked for, by the hash of their body.
        completed: Completions that went out whole, by the same hash.
        bodies: The bodies, in order of arrival.
        headers: Their headers, in the same order.
        times: Arrivals, in seconds of the monotonic clock.
    """

    requests: Counter[str] = field(default_factory=Counter)
    completed: Counter[str] = field(default_factory=Counter)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)


def body_hash(body: Mapping[str, Any]) -> str:
    """What two equal requests share."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


class FaultyServer:
    """A threaded loopback server; use it as a context manager."""

    def __init__(self, *, faults: Faults = (), port: int = 0) -> None:
        self.count = Count()
        self._lock = threading.Lock()
        self._script = faults if callable(faults) else None
        self._queue: Iterator[Fault | None] = iter(() if callable(faults) else faults)
        self._port = port
        self._stopping = threading.Event()

    def reply(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """What the server says when nothing goes wrong."""
        raise NotImplementedError

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def requests(self) -> Counter[str]:
        return self.count.requests

    @property
    def completed(self) -> Counter[str]:
        return self.count.completed

    def __enter__(self) -> Self:
        self._server = _Threads(("127.0.0.1", self._port), _handler(self))
        self._port = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.close_connections()
        self._server.server_close()
        self._thread.join()

    def answer(self, handler: BaseHTTPRequestHandler, method: str, body: bytes) -> None:
        """Answer one request, with the next fault where it is a completion."""
        headers = {name.lower(): value for name, value in handler.headers.items()}
        if not handler.path.endswith("/chat/completions"):
            _send(handler, self.reply(method, handler.path, headers, body))
            return
        asked = json.loads(body)
        key = body_hash(asked)
        with self._lock:
            number = len(self.count.bodies)
            self.count.requests[key] += 1
            self.count.bodies.append(asked)
            self.count.headers.append(headers)
            self.count.times.append(time.monotonic())
            fault = self._script(number, asked) if self._script else next(self._queue, None)
        if fault is not None and fault.kind in ("hang", "reset", "status"):
            self._refuse(handler, fault)
            return
        reply = self.reply(method, handler.path, headers, body)
        if fault is None:
            _send(handler, reply)
            if reply.status == 200:
                with self._lock:
                    self.count.completed[key] += 1
            return
        self._spoil(handler, fault, reply)

    def _refuse(self, handler: BaseHTTPRequestHandler, fault: Fault) -> None:
        """Answer without asking any model."""
        if fault.kind == "hang":
            self._stopping.wait(fault.seconds)
        if fault.kind in ("hang", "reset"):
            _reset(handler)
            return
        headers = {"content-type": "application/json"}
        if fault.retry_after_s is not None:
            headers["retry-after"] = (
                email.utils.formatdate(time.time() + fault.retry_after_s, usegmt=True)
                if fault.as_date
                else f"{fault.retry_after_s:g}"
            )
        error = {"message": fault.said, "type": "error", "code": fault.code or str(fault.status)}
        _send(handler, Reply(fault.status, headers, json.dumps({"error": error}).encode()))

    def _spoil(self, handler: BaseHTTPRequestHandler, fault: Fault, reply: Reply) -> None:
        """Answer with something else than what the model said."""
        if fault.kind == "cut":
            _head(handler, reply, length=len(reply.body))
            handler.wfile.write(reply.body[: len(reply.body) // 2])
            _close(handler)
        elif fault.kind == "drip":
            _head(handler, reply, length=len(reply.body))
            for byte in reply.body:
                handler.wfile.write(bytes([byte]))
                handler.wfile.flush()
                if self._stopping.wait(fault.seconds):
                    break
        elif fault.kind == "content_type":
            page = b"<html><body>504 Gateway Time-out</body></html>"
            _send(handler, Reply(200, {"content-type": "text/html"}, page))
        elif fault.kind == "garbage":
            _send(handler, reply._replace(body=b'{"choices": [{"mess'))
        elif fault.kind == "list_body":
            _send(handler, reply._replace(body=b"[1, 2]"))
        else:
            body = _spoiled(fault, json.loads(reply.body))
            _send(handler, reply._replace(body=json.dumps(body).encode()))


class FaultProxy(FaultyServer):
    """Passes requests on to another server, apart from the faults."""

    def __init__(self, target: str, *, faults: Faults = (), port: int = 0) -> None:
        super().__init__(faults=faults, port=port)
        self._target = urlsplit(target)

    def reply(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        assert self._target.hostname is not None
        to = http.client.HTTPConnection(self._target.hostname, self._target.port, timeout=600)
        try:
            kept = {k: v for k, v in headers.items() if k in ("authorization", "content-type")}
            to.request(method, path, body=body or None, headers=kept)
            answer = to.getresponse()
            content = {"content-type": answer.getheader("content-type", "application/json")}
            return Reply(answer.status, content, answer.read())
        except OSError as error:
            # The server behind is gone; its client sees what a gateway says then.
            said = json.dumps({"error": {"message": f"upstream: {error}", "code": "502"}})
            return Reply(502, {"content-type": "application/json"}, said.encode())
        finally:
            to.close()


def _spoiled(fault: Fault, body: dict[str, Any]) -> Any:
    choice = body["choices"][0]
    match fault.kind:
        case "wrong_model":
            body["model"] = fault.model
        case "empty":
            choice["message"]["content"] = ""
        case "null_choices":
            body["choices"] = None
        case "no_choices":
            body["choices"] = []
        case "huge":
            choice["message"]["content"] = "A" * fault.size
        case "no_usage":
            del body["usage"]
        case "no_reason":
            choice["finish_reason"] = None
    return body


class _Threads(ThreadingHTTPServer):
    """Closes its connections when it stops, so that keep-alive threads end."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *given: Any) -> None:
        self._open: set[socket.socket] = set()
        super().__init__(*given)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        for connection in tuple(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error here."""


def _handler(server: FaultyServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            server.answer(self, "GET", b"")

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length", 0))
            server.answer(self, "POST", self.rfile.read(length))

        def log_message(self, *_: object) -> None:
            """Quiet."""

    return Handler


def _head(handler: BaseHTTPRequestHandler, reply: Reply, *, length: int) -> None:
    handler.send_response(reply.status)
    for name, value in reply.headers.items():
        handler.send_header(name, value)
    handler.send_header("content-length", str(length))
    handler.end_headers()
    handler.wfile.flush()


def _send(handler: BaseHTTPRequestHandler, reply: Reply) -> None:
    _head(handler, reply, length=len(reply.body))
    handler.wfile.write(reply.body)
    handler.wfile.flush()


def _close(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True
    with contextlib.suppress(OSError):
        handler.connection.shutdown(socket.SHUT_RDWR)


def _reset(handler: BaseHTTPRequestHandler) -> None:
    """Close so that the other side sees a reset rather than an end."""
    handler.close_connection = True
    linger = struct.pack("ii", 1, 0)
    with contextlib.suppress(OSError):
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        handler.connection.close()
