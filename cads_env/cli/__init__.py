"""`cads`: the command line."""

from cads_env.cli.app import main
from cads_env.cli.arguments import parse_pairs, parse_seeds

__all__ = ["main", "parse_pairs", "parse_seeds"]
