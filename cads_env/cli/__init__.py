"""`cads`: the command line."""

from cads_env.cli.arguments import parse_pairs, parse_seeds
from cads_env.cli.start import main

__all__ = ["main", "parse_pairs", "parse_seeds"]
