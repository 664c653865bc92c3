"""The flags and the environment of a vLLM server whose answers can be had again.

Pure functions of the settings. What each flag prevents is said beside it; `agents/README.md` says
what they cost.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cads_agents.serving.interpreter import Device
from cads_env.errors import RunError, quoted

DEFAULT_PORT: Final = 8000
LONGEST_CPU: Final = 4_096
LONGEST_GPU: Final = 16_384
"""Tokens of prompt and answer together. The longest prompt of protocol `proposer` has about 3,000;
some models would else reserve memory for a million."""
SEQUENCES_CPU: Final = 64
SEVERAL_NODES: Final = frozenset(
    {"--data-parallel-address", "--headless", "--nnodes", "--master-addr", "--node-rank"}
)
"""Flags of a server that spans machines: its parts must not listen on loopback alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a model is served.

    Attributes:
        host: Address that the server listens on.
        port: Its port, 1 to 65535.
        device: What it computes on.
        gpus: Copies of the model, one a GPU, behind one address.
        max_model_len: Tokens of prompt and answer; None takes the device's default.
        is_batch_invariant: On GPUs, whether an answer may not depend on what else is asked.
        threads: On CPUs, threads of the worker; None leaves it to vLLM.
        cache_gib: On CPUs, memory for keys and values, in GiB.
        extra: Further flags of vLLM, passed on as they are; they win over ours.
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    device: Device = "cpu"
    gpus: int = 1
    max_model_len: int | None = None
    is_batch_invariant: bool = True
    threads: int | None = None
    cache_gib: int = 1
    extra: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            RunError: A value is outside its range.
        """
        for name, value, low, high in (
            ("port", self.port, 1, 65_535),
            ("gpus", self.gpus, 1, 1_024),
            ("max-model-len", self.max_model_len or 1, 1, 10_000_000),
            ("cache-gib", self.cache_gib, 1, 100_000),
        ):
            if not low <= value <= high:
                msg = f"--{name} is {value}; expected a whole number from {low} to {high:,}."
                raise RunError(msg)
        if self.device == "cpu" and self.gpus > 1:
            msg = f"--gpus is {self.gpus}, but this vLLM computes on CPUs. Leave it out."
            raise RunError(msg)

    @property
    def longest(self) -> int:
        """Tokens of prompt and answer together."""
        return self.max_model_len or (LONGEST_CPU if self.device == "cpu" else LONGEST_GPU)

    @property
    def base_url(self) -> str:
        """What a client on this machine is told."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "") else self.host
        host = "[::1]" if host == "::" else f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/v1"


def server_flags(name: str, settings: Settings) -> list[str]:
    """The flags of vLLM, without the model itself.

    Args:
        name: Name under which the model is asked for.
        settings: How it is served.
    """
    shared = [
        "--served-model-name", name,
        "--host", settings.host,
        "--port", str(settings.port),
        "--seed", "0",
        # Else the model's own file decides temperature and top-p where a request is silent.
        "--generation-config", "vllm",
        "--max-model-len", str(settings.longest),
        # Else cached tokens are not counted.
        "--enable-prompt-tokens-details",
        # The one backend that takes a genome's names; without the second a weak model fills an
        # answer with white space.
        "--structured-outputs-config", '{"backend":"guidance","disable_any_whitespace":true}',
    ]  # fmt: skip
    own = _cpu_flags(settings) if settings.device == "cpu" else _gpu_flags(settings)
    return [*_without(shared + own, settings.extra), *settings.extra]


def server_environment(settings: Settings, *, is_local: bool = False) -> dict[str, str]:
    """Environment variables of the server, beyond what the user's own has.

    Args:
        settings: How it is served.
        is_local: Whether the model lies on this disk, so that nothing needs fetching.
    """
    environment = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    if is_local:
        environment["HF_HUB_OFFLINE"] = "1"
    if _is_loopback(settings.host) and not _spans_nodes(settings.extra):
        # Else its parts talk to each other on the machine's own address.
        environment["VLLM_HOST_IP"] = "127.0.0.1"
    if settings.device == "cpu":
        environment["VLLM_CPU_KVCACHE_SPACE"] = str(settings.cache_gib)
        if settings.threads is not None:
            environment["OMP_NUM_THREADS"] = str(settings.threads)
    elif settings.is_batch_invariant:
        environment["VLLM_BATCH_INVARIANT"] = "1"
        environment["VLLM_USE_FLASHINFER_SAMPLER"] = "0"
    return environment


def _cpu_flags(settings: Settings) -> list[str]:
    return [
        # bfloat16 meets an illegal instruction on some processors, and differs between them.
        "--dtype", "float32",
        "--enforce-eager",
        # A request with a seed kills the engine when its prompt is read in parts.
        "--no-enable-chunked-prefill",
        "--max-num-batched-tokens", str(max(2 * LONGEST_CPU, settings.longest)),
        "--max-num-seqs", str(SEQUENCES_CPU),
    ]  # fmt: skip


def _gpu_flags(settings: Settings) -> list[str]:
    return ["--data-parallel-size", str(settings.gpus)] if settings.gpus > 1 else []


def _without(flags: list[str], extra: Sequence[str]) -> list[str]:
    """Our flags less those that the user gives as well, with their values."""
    theirs = {_stem(word) for word in extra if word.startswith("--")}
    kept: list[str] = []
    is_dropped = False
    for word in flags:
        if word.startswith("--"):
            is_dropped = _stem(word) in theirs
        if not is_dropped:
            kept.append(word)
    return kept


def _stem(flag: str) -> str:
    """A flag's name, the same for `--x`, `--no-x` and `--x=1`."""
    name = flag.partition("=")[0].removeprefix("--").replace("_", "-")
    return name.removeprefix("no-")


def _spans_nodes(extra: Sequence[str]) -> bool:
    words = [word.partition("=")[0].replace("_", "-") for word in extra]
    return bool(SEVERAL_NODES & set(words)) or any("ray" in x.split("=") for x in extra)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError as error:
        if host.replace("-", "").replace(".", "").isalnum():
            return False
        msg = f"--host is {quoted(host)}; expected an address or a name, e.g. 127.0.0.1."
        raise RunError(msg) from error
