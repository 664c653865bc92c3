"""The leaderboard's package. It may import cads_env and cads_agents; neither imports it."""
