"""What a chat template leaves in an answer: tokens of turns and roles, taken out before reading.

Small models write them as plain text, and go on with a conversation of their own behind them. Never
drops anything of an answer that holds no such token.
"""

from __future__ import annotations

import re

_FINAL_CHANNEL = re.compile(r"<\|channel\|>\s*final\b[^<>]{0,80}<\|message\|>")
# Thinking under another name: it is no answer, also when nothing follows it.
_ANALYSIS = re.compile(
    r"<\|channel\|>\s*analysis\b[^<>]{0,80}<\|message\|>.*?(?=<\|(?:end|channel)\|>|\Z)", re.DOTALL
)
_START = re.compile(
    r"<\|(?:im_start|start)\|>[ \t]*\w{0,20}|<start_of_turn>[ \t]*\w{0,20}"
    r"|<\|start_header_id\|>\s*\w{1,20}\s*<\|end_header_id\|>"
    r"|<\|channel\|>\s*\w{1,20}[^<>]{0,80}<\|message\|>|<\|(?:assistant|begin_of_text|message)\|>"
    r"|\[/?INST\]"
)
_END = re.compile(
    r"<\|(?:im_end|eot_id|eom_id|end_of_text|endoftext|end|return|user|system)\|>|<end_of_turn>"
)
_ROLE = re.compile(r"\s*(?:assistant|ASSISTANT|Assistant)[ \t]*:?[ \t]*\n")
_HINTS = ("<|", "_of_turn>", "INST]", "ssistant", "SSISTANT")


def own_turn(text: str) -> str:
    """The text of the answer's own turn, without the tokens of a chat template.

    A channel that is announced as final wins over what comes before it, and a channel of analysis
    is thinking. What follows the first
    token that ends a turn is another turn, unless nothing came before it.

    Args:
        text: The answer.

    Returns:
        The text itself when no token is in it.
    """
    if not any(hint in text for hint in _HINTS):
        return text
    channel = _FINAL_CHANNEL.search(text)
    text = text[channel.end() :] if channel else _ANALYSIS.sub("", text)
    for turn in _END.split(text):
        own = _START.sub("\n", turn)
        own = _ROLE.sub("\n", own, count=1) if _ROLE.match(own) else own
        if own.strip():
            return own
    return ""
