"""An agent that asks a counting server over HTTP, or a function; and the server.

Its answers depend on the request alone, so that every order of asking gives the same campaigns.
"""

from __future__ import annotations

import hashlib
import json
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cads_env.proposer import Journal, Proposal, ProposerFailed, View
from cads_env.run.rows import Key
from cads_env.run.traces import read_trace, trace_files
from cads_env.testing import tiny_protocol, tiny_registry

PAIR = tiny_registry()
PROTOCOL = tiny_protocol(reads_each=4, certificate={"q": 0.3})
ROWS = ("campaigns.jsonl", "declarations.jsonl", "reads.jsonl", "rounds.jsonl")
ATTEMPTS = 2


def answer_to(request: Mapping[str, Any]) -> dict[str, Any]:
    """Some names, valid ones and others, and what they took."""
    names = str(request["messages"][0]["content"]).split()
    digest = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).digest()
    picks = [names[(digest[i] * 256 + digest[i + 1]) % len(names)] for i in range(0, 16, 2)]
    text = " ".join([*picks, "NOBODY"])
    usage = {"tokens_in": len(names), "tokens_out": len(picks), "cost": 0.25}
    return {"text": text, "usage": usage, "retries": [{"error": "timeout"}]}


class Asks:
    """Asks twice a round and proposes all names that come back."""

    def __init__(
        self, journal: Journal, seed: int = 0, url: str = "", style: str = "plain"
    ) -> None:
        self._journal, self._seed, self._url, self._style = journal, seed, url, style

    def propose(self, view: View) -> Proposal:
        names: list[str] = []
        content = " ".join(name for name in view.identifiers if name not in view.tested)
        for attempt in range(ATTEMPTS):
            request = {
                "kind": "chat",
                "round": view.round,
                "attempt": attempt,
                "style": self._style,
                "seed": self._seed,
                "messages": [{"role": "user", "content": content}],
            }
            answer = self._journal.exchange(request, lambda r=request: self._ask(r))
            names += answer["text"].split()
        return Proposal(tuple(names), raw=" ".join(names), attempts=ATTEMPTS)

    def _ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        if not self._url:
            return answer_to(request)
        call = urllib.request.Request(self._url, json.dumps(request).encode(), method="POST")
        try:
            with urllib.request.urlopen(call, timeout=20) as response:
                answer: dict[str, Any] = json.loads(response.read())
        except OSError as error:
            raise ProposerFailed(f"no answer: {error}") from error
        return answer


class CountingServer:
    """Answers requests and counts them.

    Attributes:
        url: Where it listens.
        counts: How often each request came, by its text.
        on_request: Called with the number of requests so far, before one is answered.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.counts: Counter[str] = Counter()
        self.on_request: Callable[[int], None] = lambda _: None
        self._lock = threading.Lock()

    def count(self, text: str) -> None:
        with self._lock:
            self.counts[text] += 1
            number = sum(self.counts.values())
        self.on_request(number)


@contextmanager
def counting_server() -> Iterator[CountingServer]:
    """A server on this machine, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.count(json.dumps(request, sort_keys=True))
            raw = json.dumps(answer_to(request)).encode()
            try:
                self.send_response(200)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)
            except OSError:
                # Who asked was killed.
                return

        def log_message(self, *_: Any) -> None:
            return

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            return

    with Quiet(("127.0.0.1", 0), Handler) as listening:
        server = CountingServer(f"http://127.0.0.1:{listening.server_port}/")
        thread = threading.Thread(target=listening.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join()


def recorded(folder: Path) -> Counter[str]:
    """How often each request of a run was answered, by its text."""
    return Counter(
        json.dumps(exchange.request, sort_keys=True)
        for path in trace_files(folder)
        for exchange in read_trace(path)
        if exchange.failed is None
    )


def rows_of(folder: Path) -> dict[str, bytes]:
    """The row files of a run."""
    return {name: (folder / name).read_bytes() for name in ROWS}


def manifest_of(folder: Path) -> dict[str, Any]:
    """The manifest of a run without what holds times."""
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    manifest.pop("traces", None)
    return manifest


KEY = Key("arm", "tiny", 3)
