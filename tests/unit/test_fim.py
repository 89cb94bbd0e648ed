"""Fill-in-the-middle prompts of every family, from ids alone."""

import pytest
from tokenizers import Tokenizer as Encoder

from models.fim import FORMATS, FimFormat, detect
from models.special_tokens import STOP_TEXTS
from models.tokenizer import Tokenizer, TokenizerFacts
from tests.support.tiny_tokenizer import tiny_encoder, tiny_tokenizer

BEFORE, AFTER = [1, 2, 3], [4, 5]
FAMILIES: dict[str, tuple[list[str], list[str | int]]] = {
    "qwen": (
        ["<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|repo_name|>", "<|file_sep|>"],
        ["<|fim_prefix|>", *BEFORE, "<|fim_suffix|>", *AFTER, "<|fim_middle|>"],
    ),
    "codegemma": (
        ["<bos>", "<eos>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|file_separator|>"],
        ["<bos>", "<|fim_prefix|>", *BEFORE, "<|fim_suffix|>", *AFTER, "<|fim_middle|>"],
    ),
    "starcoder": (
        ["<|endoftext|>", "<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<file_sep>"],
        ["<fim_prefix>", *BEFORE, "<fim_suffix>", *AFTER, "<fim_middle>"],
    ),
    "codellama": (
        ["<s>", "</s>", "▁<PRE>", "▁<SUF>", "▁<MID>", "▁<EOT>"],
        ["<s>", "▁<PRE>", *BEFORE, "▁<SUF>", *AFTER, "▁<MID>"],
    ),
    "deepseek": (
        ["<｜begin▁of▁sentence｜>", "<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", "<|EOT|>"],
        ["<｜begin▁of▁sentence｜>", "<｜fim▁begin｜>", *BEFORE, "<｜fim▁hole｜>", *AFTER, "<｜fim▁end｜>"],
    ),
    "codestral": (
        ["<s>", "</s>", "[INST]", "[PREFIX]", "[SUFFIX]"],
        ["<s>", "[SUFFIX]", *AFTER, "[PREFIX]", *BEFORE],
    ),
}


def tokenizer_with(special: list[str]) -> Tokenizer:
    """The tiny vocabulary with another family's special tokens."""
    first = tiny_encoder().get_vocab_size()
    ids = {text: first + index for index, text in enumerate(special)}
    facts = TokenizerFacts("tiny", first + len(special), "bytes", ids, {})
    return Tokenizer(facts, Encoder.from_str(tiny_encoder().to_str()))


def found(tokenizer: Tokenizer) -> FimFormat:
    """The detected format."""
    known = detect(tokenizer)
    assert known is not None
    return known


def test_every_family_is_tested() -> None:
    assert {known.family for known in FORMATS} == FAMILIES.keys()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_recognised_and_its_prompt_built(family: str) -> None:
    special, wanted = FAMILIES[family]
    tokenizer = tokenizer_with(special)
    known = found(tokenizer)
    assert known.family == family
    ids = known.build(BEFORE, AFTER, tokenizer)
    assert ids == [tokenizer.special(item) if isinstance(item, str) else item for item in wanted]
    assert len(ids) == len(BEFORE) + len(AFTER) + len(known.markers)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_prompt_is_taken_apart_again(family: str) -> None:
    tokenizer = tokenizer_with(FAMILIES[family][0])
    known = found(tokenizer)
    ids = known.build(BEFORE, AFTER, tokenizer)
    assert known.split(ids, tokenizer) == (tuple(BEFORE), tuple(AFTER))
    assert known.split([*ids, 6], tokenizer) == ((*BEFORE, 6), tuple(AFTER))
    assert known.split(BEFORE, tokenizer) is None


@pytest.mark.parametrize("family", FAMILIES)
def test_every_mark_of_a_family_but_its_beginning_ends_a_completion(family: str) -> None:
    special = [text for text in FAMILIES[family][0] if text != "<bos>"]
    tokenizer = tokenizer_with(FAMILIES[family][0])
    assert set(special) <= STOP_TEXTS
    assert tokenizer.eos_ids == {tokenizer.special(text) for text in special}


@pytest.mark.parametrize("family", FAMILIES)
def test_an_empty_file_can_be_asked_about(family: str) -> None:
    tokenizer = tokenizer_with(FAMILIES[family][0])
    known = found(tokenizer)
    assert len(known.build([], [], tokenizer)) == len(known.markers)


def test_a_vocabulary_without_the_marks_has_no_format() -> None:
    assert detect(tokenizer_with(["<|endoftext|>", "<|im_start|>", "<repo_name>", "<file_sep>"])) is None
    assert detect(tokenizer_with(["<|fim_prefix|>", "<|fim_suffix|>"])) is None


def test_a_repository_prompt_names_each_file_before_the_edited_one() -> None:
    tokenizer = tiny_tokenizer()
    bodies = [("a.py", tokenizer.encode("import b")), ("lib/b.py", tokenizer.encode("x = 1"))]
    known = found(tokenizer)
    ids = known.build(BEFORE, AFTER, tokenizer, known.repository("proj", bodies, "main.py", tokenizer))
    spelt = [f"{text}" if (text := _mark(tokenizer, token)) else tokenizer.decode([token]) for token in ids]
    prefix, suffix = tokenizer.decode(BEFORE), tokenizer.decode(AFTER)
    assert "".join(spelt) == (
        "<|repo_name|>proj\n<|file_sep|>a.py\nimport b\n<|file_sep|>lib/b.py\nx = 1\n"
        f"<|file_sep|>main.py\n<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>"
    )


def test_a_family_without_repositories_falls_back_to_the_file_alone() -> None:
    tokenizer = tokenizer_with(FAMILIES["codestral"][0])
    known = found(tokenizer)
    assert known.repository("r", [("a.py", [9])], "b.py", tokenizer) == []


def _mark(tokenizer: Tokenizer, token: int) -> str | None:
    return next((text for text, known in tokenizer.facts.special.items() if known == token), None)
