"""Configuration files of cads-env: protocols as YAML. Holds data only, no code."""
