"""Reading identifiers out of the text of a language model.

`parse_proposal` is the public function; the other files hold one layout each. Pure functions of
text and names: nothing here knows a screen.
"""

from cads_env.parsing.answer import (
    MAX_ENTRY_LENGTH,
    ParsedProposal,
    parse_proposal,
    without_thinking,
)

__all__ = ["MAX_ENTRY_LENGTH", "ParsedProposal", "parse_proposal", "without_thinking"]
