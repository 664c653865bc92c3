"""Reports of proposers that ask a language model: delivery, factors, probes and published figures.

Everything follows from a run's rows and traces. Never asks a model and never reads an oracle.
"""
