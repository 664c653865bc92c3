"""What an installation is made of and whether it works; says what to do about what does not.

Looks and never mends. Tells no value of an environment variable but the data folder's, and no name
of machine or user: the user's own folder is `~`.
"""

from cads_env.report.doctor.examine import as_json, examine, is_well
from cads_env.report.doctor.finding import Finding

__all__ = ["Finding", "as_json", "examine", "is_well"]
