"""Which tokens of the families' vocabularies are marks, and which added ones are plain text."""

import re

STOP_TEXTS = frozenset(
    {
        *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|repo_name|>", "<|file_sep|>"),
        *("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>"),
        *("<|file_separator|>", "<eos>", "<start_of_turn>", "<end_of_turn>"),
        *("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>"),
        *("<file_sep>", "<filename>", "<reponame>", "<repo_name>", "<issue_start>", "<jupyter_start>"),
        *("▁<PRE>", "▁<SUF>", "▁<MID>", "▁<EOT>", "<s>", "</s>"),
        *("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
        *("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<|EOT|>"),
        *("[PREFIX]", "[SUFFIX]", "[MIDDLE]", "[INST]", "[/INST]"),
        *("<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|start_header_id|>"),
    }
)
"""special tokens that no completion continues past, in whatever family has them"""

NEVER_TEXT = STOP_TEXTS - {"<s>", "</s>", "<eos>"}
"""special whatever a file calls them (some list these as words); the three others are words in some vocabularies"""

_HTML = "table|caption|thead|tbody|tfoot|tr|th|td|h[1-6]|blockquote|strong|em|b|i|u|s|sub|sup|code"
_PLAIN = re.compile(rf"\s+|▁+|</?(?:{_HTML})>")


def is_plain(text: str) -> bool:
    """Whether an added token stands for ordinary text: runs of white space, and HTML's tags in Gemma's vocabulary.

    Every other added token is a mark that text must never become, whether or not its file calls it special: Qwen's
    fill-in-the-middle tokens, for one, are not called so.
    """
    return _PLAIN.fullmatch(text) is not None
