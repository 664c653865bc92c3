"""The instrument's own check: whether a protocol's scores rise with skill and with nothing else.

`selfcheck` plays and judges it, `badge_of` looks up what was found of a protocol before. Knows
no report and no command line.
"""

from cads_env.selfcheck.badge import Badge, badge_of
from cads_env.selfcheck.config import Settings, load_settings
from cads_env.selfcheck.draft import Check
from cads_env.selfcheck.instrument import selfcheck
from cads_env.selfcheck.outcome import SelfCheck

__all__ = ["Badge", "Check", "SelfCheck", "Settings", "badge_of", "load_settings", "selfcheck"]
