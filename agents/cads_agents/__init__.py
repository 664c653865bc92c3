"""The agents that come with cads-env, found through the entry-point group `cads_env.agents`.

They use what anyone's agent may use: the view of `cads_env.proposer`. None of them sees an oracle.
"""
