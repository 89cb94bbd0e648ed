"""Making a tokenizer from a model folder's `tokenizer.json`; done once, then kept by `Tokenizer.save`."""

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Encoder

from assistant.errors import ArchitectureError, ModelCorruptError
from models.special_tokens import NEVER_TEXT, is_plain
from models.tokenizer import Alphabet, Tokenizer, TokenizerFacts


def from_folder(folder: Path, name: str) -> Tokenizer:
    """The tokenizer of a model folder: its `tokenizer.json`, or what transformers makes of its older files.

    Raises:
        ArchitectureError: the vocabulary is no byte-pair encoding.
        ModelCorruptError: the folder holds no tokenizer, or a damaged one.
    """
    try:
        document = json.loads(_document(folder))
        model, added = document["model"], document.get("added_tokens") or []
        if model["type"] != "BPE":
            raise ArchitectureError(
                f"{folder} has a vocabulary of the kind {model['type']}; only byte-pair encodings can be used."
            )
        return _from_document(folder, document, {token["content"]: token for token in added}, name)
    except (ValueError, KeyError, TypeError) as error:
        raise ModelCorruptError(f"{folder / 'tokenizer.json'} is damaged; fetch the model again.") from error


def _document(folder: Path) -> str:
    path = folder / "tokenizer.json"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    from transformers import AutoTokenizer

    try:
        made = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        return str(made.backend_tokenizer.to_str())
    except Exception as error:  # whatever transformers raises, there is no tokenizer to be had
        raise ModelCorruptError(
            f"{folder} holds no tokenizer.json and no other tokenizer that can be read; fetch the model again."
        ) from error


def _from_document(folder: Path, document: dict[str, Any], added: dict[str, dict[str, Any]], name: str) -> Tokenizer:
    model = document["model"]
    alphabet: Alphabet = (
        "bytes" if "ByteLevel" in json.dumps([document["pre_tokenizer"], document["decoder"]]) else "pieces"
    )
    plain = {text: item["id"] for text, item in added.items() if not item["special"] and is_plain(text)}
    special = {text: item["id"] for text, item in added.items() if text not in plain}
    special |= {text: model["vocab"][text] for text in NEVER_TEXT & model["vocab"].keys()}
    size = 1 + max([*model["vocab"].values(), *special.values(), *plain.values()])
    model["vocab"] = {text: token for text, token in model["vocab"].items() if text not in special} | plain
    model["merges"] = [
        pair
        for pair in model["merges"]
        if "".join(pair if isinstance(pair, list) else pair.split(" ", 1)) in model["vocab"]
    ]
    model["unk_token"] = None
    document |= {
        "added_tokens": [
            item | {"special": False} for text, item in added.items() if text in plain and "▁" not in text
        ],
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"} if alphabet == "pieces" else None,
        "pre_tokenizer": _without_prefix(document["pre_tokenizer"]),
        "post_processor": None,
        "decoder": None,
        "truncation": None,
        "padding": None,
    }
    ends, start = _folder_ends(folder, special), _folder_start(folder, special)
    facts = TokenizerFacts(
        name, size, alphabet, special, {text: plain[text] for text in plain if "▁" not in text}, ends, start
    )
    try:
        return Tokenizer(facts, Encoder.from_str(json.dumps(document)))
    except Exception as error:  # `tokenizers` raises bare Exceptions
        raise ValueError(str(error)) from error


def _without_prefix(step: Any) -> Any:
    """A pre-tokenizer's description that puts no space before the text."""
    if isinstance(step, list):
        return [_without_prefix(item) for item in step]
    if not isinstance(step, dict):
        return step
    changes: dict[str, Any] = {"add_prefix_space": False} if "add_prefix_space" in step else {}
    changes |= {"prepend_scheme": "never"} if "prepend_scheme" in step else {}
    changes |= {"pretokenizers": _without_prefix(step["pretokenizers"])} if "pretokenizers" in step else {}
    return step | changes


def _folder_ends(folder: Path, special: dict[str, int]) -> tuple[int, ...]:
    ends: set[int] = set()
    for name in ("generation_config.json", "config.json"):
        value = _json(folder / name).get("eos_token_id")
        ends |= {int(token) for token in (value if isinstance(value, list) else [value]) if token is not None}
    text = _text_of(_json(folder / "tokenizer_config.json").get("eos_token"))
    return tuple(sorted(ends | ({special[text]} if text in special else set())))


def _folder_start(folder: Path, special: dict[str, int]) -> int | None:
    config = _json(folder / "tokenizer_config.json")
    # Llama's tokenizer classes begin with this token unless told otherwise; the others say so when they do.
    default = "Llama" in str(config.get("tokenizer_class")) or "Gemma" in str(config.get("tokenizer_class"))
    return special.get(_text_of(config.get("bos_token"))) if config.get("add_bos_token", default) else None


def _text_of(token: Any) -> str:
    return str(token.get("content") if isinstance(token, dict) else token)


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
