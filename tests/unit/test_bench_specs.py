"""The grammar of `--methods`."""

import pytest

from assistant.bench.specs import MethodSpec, parse_methods, with_plain
from assistant.engine.tree import TreeShape
from assistant.errors import UsageError

BASE = TreeShape(nodes=16, depth=6, width=8)


def parse(text: str) -> tuple[MethodSpec, ...]:
    return parse_methods(text, BASE)


def test_plain_names_take_the_common_shape() -> None:
    assert parse("plain, ngram,eagle2") == tuple(MethodSpec(name, name, BASE) for name in ("plain", "ngram", "eagle2"))


def test_at_is_short_for_nodes() -> None:
    (spec,) = parse("eagle2@60")
    assert (spec.name, spec.label, spec.shape) == ("eagle2", "eagle2@60", TreeShape(nodes=60, depth=6, width=8))


def test_options_after_a_comma_belong_to_the_method_before_them() -> None:
    first, second = parse("eagle2:nodes=8,depth=7,rerank=off,rank=confidence,best-first@4")
    assert first.shape == TreeShape(nodes=8, depth=7, width=8, rerank=False, rank="confidence")
    assert (second.name, second.shape.nodes, second.shape.rerank) == ("best-first", 4, True)


def test_nodes_and_further_options_mix() -> None:
    (spec,) = parse("eagle2@12,width=3,top_p=0.9,threshold=0.01,margin=2.5")
    assert spec.shape == TreeShape(nodes=12, depth=6, width=3, top_p=0.9, threshold=0.01, margin=2.5)
    assert spec.label == "eagle2@12:width=3,top_p=0.9,threshold=0.01,margin=2.5"


def test_peers_have_a_precision_alone() -> None:
    ours, theirs, llama = parse("plain,transformers:precision=bfloat16,llama.cpp")
    assert (theirs.precision, theirs.is_peer, llama.is_peer, ours.is_peer) == ("bfloat16", True, True, False)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        (" , ", "is empty"),
        ("eagle9", "eagle9 is not a method"),
        ("eagle2@", "is not a method"),
        ("eagle2@many", "is not a method"),
        ("nodes=3,eagle2", "a method's name comes first"),
        ("eagle2:leaves=3", "there is no option leaves"),
        ("eagle2:nodes=three", "nodes=three is not a number"),
        ("eagle2:nodes=0", "nodes=0 is too small"),
        ("eagle2:rerank=maybe", "rerank is one of on, off"),
        ("eagle2:precision=int8", "there is no option precision"),
        ("transformers@8", "there is no option nodes"),
        ("transformers:precision=int8", "precision is one of"),
        ("plain,eagle2,eagle2", "names eagle2 twice"),
    ],
)
def test_mistakes_are_one_sentence(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert says in str(caught.value)


def test_plain_joins_where_it_is_missing() -> None:
    assert [spec.name for spec in with_plain(parse("ngram"), BASE)] == ["plain", "ngram"]
    assert [spec.name for spec in with_plain(parse("ngram,plain"), BASE)] == ["ngram", "plain"]
