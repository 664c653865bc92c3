"""`python -m cads_env`: the command line `cads`."""

from cads_env.cli import main

main()
