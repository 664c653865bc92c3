"""Commands that come with our agents: `cads serve` and `cads trace`.

They read arguments, call the packages and print; they decide nothing themselves.
"""

from cads_agents.cli.serve import serve
from cads_agents.cli.trace import trace

__all__ = ["serve", "trace"]
