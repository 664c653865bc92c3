"""cads-env: a Gymnasium benchmark for agentic discovery screens.

A screen spends reads on registered candidates and leaves a record; a certificate turns the record
into an error-controlled set of discoveries; a proposer is worth the difference between that set and
the one its proposer-removed twin reaches on the same registry, seed and noise. Importing this
package registers the environments by string and loads nothing else.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import gymnasium

if TYPE_CHECKING:
    from cads_env.panel import Panel, load_panel, load_registry
    from cads_env.parsing import ParsedProposal, parse_proposal
    from cads_env.proposer import Proposal, Proposer, ProposerFailed, View
    from cads_env.protocol import Protocol, load_protocol
    from cads_env.registry import Oracle, Registry, relabel
    from cads_env.run.evaluate import evaluate
    from cads_env.run.result import RunResult
    from cads_env.wrappers import make_twin

__version__ = "0.1.0"

_HOMES = {
    "Oracle": "registry",
    "Panel": "panel",
    "ParsedProposal": "parsing",
    "Proposal": "proposer",
    "Proposer": "proposer",
    "ProposerFailed": "proposer",
    "Protocol": "protocol",
    "Registry": "registry",
    "RunResult": "run",
    "View": "proposer",
    "evaluate": "run",
    "load_panel": "panel",
    "load_protocol": "protocol",
    "load_registry": "panel",
    "make_twin": "wrappers",
    "parse_proposal": "parsing",
    "relabel": "registry",
}
_MODULES = ("certificate", "envs", "errors", "selfcheck", "testing", "wrappers")

__all__ = [
    "Oracle",
    "Panel",
    "ParsedProposal",
    "Proposal",
    "Proposer",
    "ProposerFailed",
    "Protocol",
    "Registry",
    "RunResult",
    "View",
    "evaluate",
    "load_panel",
    "load_protocol",
    "load_registry",
    "make_twin",
    "parse_proposal",
    "relabel",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _HOMES:
        value = getattr(importlib.import_module(f"cads_env.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return importlib.import_module(f"cads_env.{name}")
    msg = f"module 'cads_env' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    """Public names, loaded or not."""
    return sorted({*globals(), *__all__, *_MODULES})


def _register() -> None:
    native = {
        "entry_point": "cads_env.envs:make_env",
        "vector_entry_point": "cads_env.envs:make_vector_env",
    }
    ids: dict[str, dict[str, Any]] = {
        "CADSScreen-v0": native,
        "CADSScreenPublished-v0": native
        | {"kwargs": {"registry": "synthetic-depmap/0", "protocol": "proposer"}},
        "CADSScreenText-v0": {"entry_point": "cads_env.envs:make_text_env"},
    }
    for name, arguments in ids.items():
        # Registered once a process: registering again would only warn.
        if name not in gymnasium.registry:
            gymnasium.register(name, **arguments)


_register()
