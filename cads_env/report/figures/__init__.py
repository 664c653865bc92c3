"""Pictures of a run, built from plain SVG elements. They draw numbers that are handed to them."""
