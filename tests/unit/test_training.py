"""Training a draft head on a tiny random model, and the parts that make its texts."""

import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from assistant.engine.kv_cache import KVCache
from assistant.errors import DocumentError, HeadMismatchError, UsageError
from models.decoder import LeanDecoder
from models.draft_head import DraftHead
from models.training import losses, products
from models.training.batched import BatchedDecoder
from models.training.corpus import Exclusion, read_corpus
from models.training.dataset import PROMPT_WEIGHT, text_weights
from models.training.features import FeatureText, read_shard, write_shard
from models.training.head import TrainableHead, head_config, head_shape, head_state, load_state, random_head
from models.training.lesson import HeadLesson
from models.training.loop import DivergedError, Trainer, read_log
from models.training.options import TrainOptions
from models.training.scaled import ScaledAdamW, head_scales
from models.training.sequential import SequentialWriter
from models.training.simulate import Drafting, accepted_lengths, tokens_per_step
from models.training.start import closed_form_head
from models.training.unroll import Batch, unroll
from tests.support.tiny import HIDDEN, VOCAB, tiny_head_state, tiny_target

PROMPTS = [[5, 9, 2, 7], [1, 2, 3, 4, 5, 6, 7], [11]]


@pytest.fixture(scope="module")
def target() -> LeanDecoder:
    return tiny_target("qwen2")


@pytest.fixture(scope="module")
def texts(target: LeanDecoder) -> list[FeatureText]:
    random = torch.Generator().manual_seed(3)
    prompts = torch.randint(VOCAB, (24, 5), generator=random).tolist()
    written = BatchedDecoder(target).write(prompts, 24, frozenset())
    return [
        FeatureText("continued", "python", text.prompt_tokens, torch.tensor(text.ids), text.features)
        for text in written
    ]


def new_cache(target: LeanDecoder) -> Callable[[], KVCache]:
    return lambda: KVCache.of(target.spec)


# --- the target as a writer ---------------------------------------------------------------------------------------


def test_products_are_taken_in_the_quicker_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {torch.float32: 2.0, torch.bfloat16: 1.0}
    monkeypatch.setattr(products, "_seconds", lambda _, dtype: seconds[dtype])
    assert products.quickest_precision("cpu") == "bfloat16"
    seconds[torch.float32] = 1.0
    assert products.quickest_precision("cpu") == "float32"
    monkeypatch.undo()
    assert products.quickest_precision("cpu") in {"bfloat16", "float32"}


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_batched_writing_is_what_the_target_writes_alone(precision: str) -> None:
    target = tiny_target("qwen2", precision)
    batched = BatchedDecoder(target).write(PROMPTS, 9, frozenset())
    alone = SequentialWriter(target, new_cache(target)).write(PROMPTS, 9, frozenset())
    for ours, theirs in zip(batched, alone, strict=True):
        assert ours.ids == theirs.ids
        torch.testing.assert_close(ours.features.float(), theirs.features.float(), atol=5e-3, rtol=5e-3)


def test_a_sequence_that_meets_a_stop_token_ends_there_and_the_others_go_on(target: LeanDecoder) -> None:
    free = BatchedDecoder(target).write(PROMPTS, 9, frozenset())
    stop = free[0].ids[len(PROMPTS[0]) + 2]
    stopped = BatchedDecoder(target).write(PROMPTS, 9, frozenset({stop}))
    for ours, theirs, prompt in zip(stopped, free, PROMPTS, strict=True):
        own = theirs.ids[len(prompt) :]
        end = own.index(stop) + 1 if stop in own else len(own)
        assert ours.ids == theirs.ids[: len(prompt) + end]
        assert len(ours.features) == len(ours.ids)


def test_features_of_given_texts_do_not_depend_on_the_padding(target: LeanDecoder) -> None:
    together = BatchedDecoder(target).features(PROMPTS)
    alone = [BatchedDecoder(target).features([prompt])[0] for prompt in PROMPTS]
    for ours, theirs in zip(together, alone, strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-3, rtol=2e-3)


# --- the head -----------------------------------------------------------------------------------------------------


def test_unrolled_steps_are_what_drafting_computes(target: LeanDecoder) -> None:
    state = tiny_head_state(target)
    trained = TrainableHead(head_shape(target.config, state["layers.0.mlp.gate_proj.weight"].shape[0]))
    full = {name: state.get(name, torch.zeros(p.shape)) for name, p in trained.named_parameters()}
    load_state(trained, full)
    drafting = DraftHead.from_state(head_config(trained.config, "tiny", 48), full, target)
    ids = torch.randint(VOCAB, (20,), generator=torch.Generator().manual_seed(1))
    features = torch.randn((20, HIDDEN), generator=torch.Generator().manual_seed(2))
    batch = Batch(ids[None], target.embed(ids)[None], features[None], torch.ones((1, 20)))
    with torch.no_grad():
        steps = list(unroll(trained, batch, torch.tensor([[4, 11]]), 4))
    for column, anchor in enumerate((4, 11)):
        cache = KVCache.of(drafting.spec)
        rows = torch.arange(anchor + 1)
        own = drafting.forward(ids[1 : anchor + 2], features[: anchor + 1], rows, cache).features[-1:]
        torch.testing.assert_close(steps[0].predicted[0, anchor], own[0])
        for number in range(1, 4):
            at = anchor + number
            own = drafting.forward(ids[at + 1 : at + 2], own, torch.tensor([at]), cache).features
            torch.testing.assert_close(steps[number].predicted[0, column], own[0], atol=1e-5, rtol=1e-4)
            assert steps[number].at[0, column] == at + 1


def test_a_start_that_does_not_fit_names_the_tensor(target: LeanDecoder) -> None:
    head = random_head(head_shape(target.config, 16))
    with pytest.raises(HeadMismatchError, match=r"fc\.weight"):
        load_state(head, {"fc.weight": torch.zeros(1)})


def test_least_squares_recovers_a_linear_map(target: LeanDecoder) -> None:
    random = torch.Generator().manual_seed(5)
    wanted = torch.randn((HIDDEN, 2 * HIDDEN), generator=random) / 8
    texts = []
    for _ in range(30):
        ids = torch.randint(VOCAB, (20,), generator=random)
        rows = [torch.randn(HIDDEN, generator=random)]
        for token in ids[1:]:
            rows.append(wanted @ torch.cat((target.embed(token[None])[0], rows[-1])))
        texts.append(FeatureText("plain", "python", 20, ids, torch.stack(rows)))
    head = closed_form_head(head_shape(target.config, 16), texts, target.embed)
    inputs = torch.cat((target.embed(ids[5:6]), rows[4][None]), 1)
    error = (head.fc(inputs)[0] - rows[5]).norm() / rows[5].norm()
    assert error.item() < 0.1


# --- training -----------------------------------------------------------------------------------------------------

OPTIONS = TrainOptions(
    steps=120,
    batch_tokens=400,
    learning_rate=1e-2,
    warm_up=5,
    evaluate_every=1000,
    save_every=1e9,
    precision="float32",
    optimizer="adamw",
)


def trainer(target: LeanDecoder, out: Path, options: TrainOptions = OPTIONS) -> Trainer[TrainableHead]:
    vocab = torch.arange(VOCAB)
    head = random_head(head_shape(target.config, 32))
    scales = None
    if options.optimizer == "scaled":
        text = FeatureText("plain", "python", 9, vocab[:9], target.head_rows(vocab[:9]))
        scales = head_scales(head, [text], target.embed)
    return Trainer(HeadLesson(head, target.head_rows(vocab), options), vocab, target.embed, options, out, scales)


def nothing(_: TrainableHead) -> dict[str, float]:
    return {"score": 0.0}


def test_loss_falls_at_every_depth(target: LeanDecoder, texts: list[FeatureText], tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    trainer(target, tmp_path).run(lambda: texts, nothing, rows.append)
    assert rows[-1]["loss"] < 0.7 * rows[0]["loss"]
    assert sum(row["top1"][2] for row in rows[-10:]) > sum(row["top1"][2] for row in rows[:10])


def test_trained_head_drafts_better_than_an_untrained_one(
    target: LeanDecoder, texts: list[FeatureText], tmp_path: Path
) -> None:
    ours = trainer(target, tmp_path)
    drafting = Drafting(target.head_rows(torch.arange(VOCAB)), torch.arange(VOCAB), target.embed)

    def mean(head: TrainableHead) -> float:
        return float(torch.stack([accepted_lengths(head, t, (8,), drafting).float().mean() for t in texts]).mean())

    before = mean(ours.averaged())
    ours.run(lambda: texts, nothing)
    assert mean(ours.averaged()) > before + 0.5


def test_scaled_steps_do_not_depend_on_the_units_of_inputs_and_outputs() -> None:
    inputs = torch.randn((64, 6), generator=torch.Generator().manual_seed(1))
    wanted = inputs @ torch.randn((6, 3), generator=torch.Generator().manual_seed(2))

    def learned(unit_in: float, unit_out: float) -> Tensor:
        weight = torch.nn.Parameter(torch.zeros((3, 6)))
        optimizer = ScaledAdamW([(weight, torch.tensor(unit_out / unit_in))], lr=0.05)
        for _ in range(30):
            optimizer.zero_grad()
            (((inputs * unit_in) @ weight.mT - wanted * unit_out) / unit_out).square().mean().backward()
            optimizer.step()
        return weight.detach() * unit_in / unit_out

    torch.testing.assert_close(learned(100.0, 0.01), learned(1.0, 1.0), atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("optimizer", ["scaled", "adamw", "muon"])
def test_a_killed_run_resumes_to_the_same_weights(
    target: LeanDecoder, texts: list[FeatureText], tmp_path: Path, optimizer: str
) -> None:
    options = replace(OPTIONS, steps=12, optimizer=optimizer)
    whole = trainer(target, tmp_path / "whole", options)
    whole.run(lambda: texts, nothing)

    class KilledError(Exception):
        pass

    def kill(row: dict[str, Any]) -> None:
        if row["step"] == 7:
            raise KilledError

    first = trainer(target, tmp_path / "parts", replace(options, save_every=0.0))
    with pytest.raises(KilledError):
        first.run(lambda: texts, nothing, kill)
    second = trainer(target, tmp_path / "parts", options)
    assert second.resume()
    assert second.progress.step == 6
    second.run(lambda: texts, nothing)
    for ours, theirs in zip(whole.averaged().parameters(), second.averaged().parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_a_loss_that_is_no_number_stops_with_what_to_do(
    target: LeanDecoder, texts: list[FeatureText], tmp_path: Path
) -> None:
    broken = [replace(text, features=text.features * float("nan")) for text in texts]
    with pytest.raises(DivergedError, match="lower --learning-rate"):
        trainer(target, tmp_path).run(lambda: broken, nothing)


def test_the_log_keeps_one_row_a_step_when_a_run_was_resumed(tmp_path: Path) -> None:
    rows = [{"step": 1, "score": 0.0}, {"step": 2, "score": 1.0}, {"step": 2, "score": 3.0}]
    (tmp_path / "log.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    assert read_log(tmp_path) == [rows[0], rows[2]]


def test_the_files_of_a_head_load_as_a_draft_head(target: LeanDecoder) -> None:
    head = random_head(head_shape(target.config, 16))
    vocab = torch.arange(0, VOCAB, 3)
    loaded = DraftHead.from_state(head_config(head.config, "tiny", len(vocab)), head_state(head, vocab), target)
    assert loaded.draft_vocab is not None
    assert loaded.draft_vocab.tolist() == vocab.tolist()


# --- simulation ---------------------------------------------------------------------------------------------------


def accepted_by_hand(head: DraftHead, text: FeatureText, root: int, nodes: int, drafting: Drafting) -> int:
    """EAGLE-2 at one place with the engine's own drafter."""
    from random import Random

    from assistant.engine.builders import dynamic
    from assistant.engine.eagle import EagleDrafter
    from assistant.engine.tree import TreeShape
    from assistant.engine.types import Prompt, Sampling

    drafter = EagleDrafter(head, dynamic)
    drafter.begin(Prompt(tuple(text.ids[:root].tolist())), 0)
    drafter.observe(text.ids[:root].tolist(), text.features[:root].float())
    shape = TreeShape(nodes=nodes, depth=drafting.depth, width=drafting.width)
    tree = drafter.draft(int(text.ids[root]), shape, Sampling(), Random(0))
    node, accepted = 0, 0
    while root + accepted + 1 < len(text.ids):
        wanted = int(text.ids[root + accepted + 1])
        child = next((n for n in tree.children[node] if tree.tokens[n] == wanted), None)
        if child is None:
            break
        node, accepted = child, accepted + 1
    return accepted


def test_simulated_trees_accept_what_the_engines_trees_accept(
    target: LeanDecoder, texts: list[FeatureText], tmp_path: Path
) -> None:
    ours = trainer(target, tmp_path)
    ours.run(lambda: texts, nothing)
    head = ours.averaged()
    vocab = torch.arange(VOCAB)
    drafting = Drafting(target.head_rows(vocab), vocab, target.embed, depth=4, width=3)
    state = {name: tensor.float() for name, tensor in head.named_parameters()}
    engine_head = DraftHead.from_state(head_config(head.config, "tiny", VOCAB), state, target)
    text = texts[0]
    lengths = accepted_lengths(head, text, (4, 12), drafting)
    for row, nodes in enumerate((4, 12)):
        roots = range(text.prompt_tokens, len(text.ids) - 1)
        assert lengths[row].tolist() == [accepted_by_hand(engine_head, text, root, nodes, drafting) for root in roots]


def test_a_walk_counts_the_targets_own_token_and_never_leaves_the_text() -> None:
    assert tokens_per_step(torch.tensor([2, 9, 9, 0, 5])) == (5, 3)


# --- corpus and texts ---------------------------------------------------------------------------------------------


def code(name: str, lines: int = 30) -> str:
    return "".join(f"def {name}_{i}(value):\n    return value * {i} + len('{name} number {i}')\n" for i in range(lines))


def test_corpus_leaves_out_copies_generated_minified_and_excluded_files(tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.jsonl.gz"
    asked = "the quick brown fox jumps over the lazy dog and then sleeps until morning"
    with gzip.open(tasks, "wt") as file:
        file.write(json.dumps({"prompt": asked, "entry_point": "wake"}) + "\n")
    data = tmp_path / "data"
    (data / "node_modules").mkdir(parents=True)
    (data / "kept.py").write_text(code("kept"))
    (data / "copy.py").write_text(code("kept"))
    (data / "near.py").write_text(code("kept") + "extra = 1\n")
    (data / "generated.py").write_text("# Code generated by a tool, DO NOT EDIT\n" + code("generated"))
    (data / "long.js").write_text("var a=" + "1+" * 400 + "1;\n")
    (data / "task.py").write_text(code("task") + f"# {asked}\n")
    (data / "node_modules" / "other.py").write_text(code("other"))
    corpus = read_corpus([data], Exclusion.read([tasks]), files_per_language=10)
    assert len(corpus) == 1
    assert Path(corpus[0].path).name in {"kept.py", "copy.py", "near.py"}


def test_exclusion_names_functions_and_refuses_what_is_no_task_file(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text(json.dumps({"entry_point": "wake"}))
    bad.write_text("no json")
    exclusion = Exclusion.read([good])
    assert exclusion.refuses_function("wake")
    assert not exclusion.refuses_function("sleep")
    with pytest.raises(DocumentError, match=r"bad\.jsonl"):
        Exclusion.read([bad])


def test_a_missing_or_empty_data_folder_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--data"):
        read_corpus([tmp_path / "none"], Exclusion(), files_per_language=1)
    with pytest.raises(UsageError, match="no source file"):
        read_corpus([tmp_path], Exclusion(), files_per_language=1)


def test_shards_give_back_what_was_written(texts: list[FeatureText], tmp_path: Path) -> None:
    path = tmp_path / "features-00000.safetensors"
    write_shard(path, texts[:3])
    for ours, theirs in zip(read_shard(path), texts[:3], strict=True):
        assert (ours.kind, ours.language, ours.prompt_tokens) == (theirs.kind, theirs.language, theirs.prompt_tokens)
        assert torch.equal(ours.ids, theirs.ids)
        assert torch.equal(ours.features, theirs.features)


def test_only_tokens_of_the_draft_vocabulary_are_asked_for_and_prompts_count_less() -> None:
    def weights(ids: Sequence[int], prompt: int) -> Tensor:
        known = torch.zeros(10, dtype=torch.bool)
        known[:8] = True
        return text_weights(
            FeatureText("continued", "go", prompt, torch.tensor(ids), torch.zeros((len(ids), 2))), known
        )

    assert weights([1, 2, 3, 9, 4, 5], 3).tolist() == [PROMPT_WEIGHT, PROMPT_WEIGHT, 0.0, 1.0, 1.0, 0.0]


def test_the_token_loss_and_its_gradient_are_those_of_the_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "_ROWS", 16)
    random = torch.Generator().manual_seed(0)
    vocabulary, teacher = torch.randn(70, 12, generator=random), torch.randn(40, 70, generator=random)
    place, weight = torch.randint(0, 40, (50,), generator=random), torch.rand(50, generator=random)
    predicted = torch.randn(50, 12, generator=random, requires_grad=True)
    loss, hits = losses._soft_cross_entropy(predicted, vocabulary, teacher, place, weight)
    (got,) = torch.autograd.grad(3 * loss, predicted)
    logits, wanted = predicted @ vocabulary.T, teacher[place]
    plain = -((wanted.softmax(-1) * logits.log_softmax(-1)).sum(-1) @ weight)
    (expected,) = torch.autograd.grad(3 * plain, predicted)
    assert torch.allclose(loss, plain)
    assert torch.allclose(got, expected, atol=1e-5)
    assert torch.allclose(hits, (logits.argmax(-1) == wanted.argmax(-1)).float() @ weight)
