"""A head's calibration changes which drafts a tree holds, and nothing that is written."""

from random import Random

import pytest
import torch

from assistant.engine.builders import best_first, dynamic
from assistant.engine.eagle import Builder, EagleDrafter
from assistant.engine.generate import generate
from assistant.engine.methods import make_drafter
from assistant.engine.session import Session
from assistant.engine.tree import DraftTree, TreeShape
from assistant.engine.types import GenerateOptions, Prompt, Sampling
from assistant.metrics import summarize
from models.calibration import Calibration, Calibrations
from models.draft_head import DraftHead
from tests.support.tiny import VOCAB, tiny_head, tiny_target

TARGET = tiny_target("qwen2")
STEEP = ((0.0, 0.02, 0.2, 1.0), (0.0, 0.01, 0.5, 0.9))
FLAT = ((0.0, 0.01, 1.0), (0.0, 0.05, 0.1))
SHAPE = TreeShape(nodes=10, depth=4, width=3)


def calibrated_head(temperature: float = 0.0) -> DraftHead:
    head = tiny_head(TARGET)
    head.calibrations = Calibrations((Calibration(TARGET.spec.name, "float32", temperature, (STEEP, FLAT)),))
    return head


def tree(head: DraftHead, shape: TreeShape, temperature: float = 0.0, build: Builder = dynamic) -> DraftTree:
    ids = torch.randint(VOCAB, (12,), generator=torch.Generator().manual_seed(4))
    features = torch.randn((12, TARGET.spec.hidden_size), generator=torch.Generator().manual_seed(5))
    drafter = EagleDrafter(head, build)
    drafter.begin(Prompt(tuple(ids.tolist())), 0)
    drafter.observe(ids.tolist(), features)
    return drafter.draft(7, shape, Sampling(temperature=temperature), Random(0))


@pytest.mark.parametrize("build", [dynamic, best_first])
def test_path_values_are_products_of_calibrated_confidences(build: Builder) -> None:
    head = calibrated_head()
    wide = TreeShape(nodes=3, depth=1, width=3)
    raw = tree(head, TreeShape(nodes=3, depth=1, width=3, calibrated=False), build=build)
    ours = tree(head, wide, build=build)
    assert ours.tokens == raw.tokens
    expected = head.calibrations.maps[0].log_values(1, torch.tensor(raw.log_values[1:]).double().numpy())
    assert ours.log_values[1:] == pytest.approx(expected.tolist(), abs=1e-5)


@pytest.mark.parametrize("build", [dynamic, best_first])
def test_values_stay_ordered_and_siblings_sum_to_at_most_one(build: Builder) -> None:
    grown = tree(calibrated_head(), SHAPE, build=build)
    assert len(grown.tokens) == SHAPE.nodes + 1
    for node, children in enumerate(grown.children):
        shares = [grown.log_values[child] - grown.log_values[node] for child in children]
        assert all(share <= 0 for share in shares)
        assert float(torch.tensor(shares).exp().sum()) <= 1 + 1e-5


def test_a_map_that_trusts_only_the_first_level_makes_the_tree_shallower() -> None:
    raw = tree(calibrated_head(), TreeShape(nodes=4, depth=4, width=3, calibrated=False))
    ours = tree(calibrated_head(), TreeShape(nodes=4, depth=4, width=3))
    assert max(ours.depths) < max(raw.depths)


def test_no_map_of_another_temperature_is_used() -> None:
    off = TreeShape(nodes=10, depth=4, width=3, calibrated=False)
    assert tree(calibrated_head(), SHAPE, temperature=1.0) == tree(calibrated_head(), off, temperature=1.0)
    assert tree(calibrated_head(1.0), SHAPE, temperature=1.0) != tree(calibrated_head(1.0), off, temperature=1.0)


def test_greedy_text_is_the_same_with_and_without() -> None:
    prompt = Prompt((3, 1, 4, 1, 5, 9, 2, 6))

    def written(head: DraftHead | None) -> tuple[int, ...]:
        drafter = make_drafter("plain" if head is None else "eagle2", TARGET, head=head)
        steps = generate(Session(TARGET, drafter), prompt, GenerateOptions(max_tokens=24, tree=SHAPE))
        return summarize(list(steps)).token_ids

    assert written(calibrated_head()) == written(None)
