"""Scripts that a server's own Python runs to make a model. Never imported by this package."""
