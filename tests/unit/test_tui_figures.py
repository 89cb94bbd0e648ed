"""The figures: what is counted, what is compared, and that nothing unmeasured is shown."""

import pytest

from assistant.protocol import Settled
from tests.support.scripted import completion, observed, plain, plain_step, prefill, step
from tui import figures
from tui.figures import RECENT, Figures, fold, speedup


def test_a_completion_in_figures() -> None:
    found = fold(Figures(), completion())
    assert (found.completions, found.steps, found.forwards, found.tokens) == (1, 2, 2, 5)
    assert found.tokens_per_step == 2.5
    assert found.origins == {"target": 1, "head": 3, "correction": 1, "retrieval": 1}
    assert found.drafted_share == pytest.approx(4 / 6)
    assert (found.prompt_tokens, found.reused) == (40, 30)
    assert found.outcomes == {"stop": 1, "accepted": 1}
    assert figures.acceptance(found) == ((1, 1.0, 2), (2, 1.0, 1), (3, 1.0, 1), (4, 0.0, 1))
    assert found.recent.nodes == (8, 1)
    assert (found.recent.queue_ms, found.recent.total_ms) == ((2.0,), (190.0,))


def test_folding_in_parts_is_folding_at_once() -> None:
    events = (*completion(), *plain(), *completion("r2"))
    halves = fold(fold(Figures(), events[:4]), events[4:])
    whole = fold(Figures(), events)
    assert halves == whole


def test_the_speedup_is_tokens_times_a_plain_step_over_what_drafting_took() -> None:
    found = fold(Figures(), completion())
    measured = speedup(found, (30.0, 20.0, 25.0), modelled_ms=99.0)
    assert measured is not None
    assert measured.times == pytest.approx(5 * 25.0 / 100.0)
    assert measured.basis == "3 measured"
    modelled = speedup(found, (), modelled_ms=40.0)
    assert modelled is not None
    assert modelled.times == pytest.approx(2.0)
    assert modelled.basis == "cost model"


def test_without_a_yardstick_or_without_drafts_there_is_no_speedup() -> None:
    assert speedup(fold(Figures(), completion()), (), 0.0) is None
    assert speedup(fold(Figures(), plain()), (25.0,)) is None


def test_plain_completions_do_not_thin_out_the_figures_of_drafting() -> None:
    alone, mixed = (fold(Figures(), events) for events in (completion(), (*completion(), *plain())))
    assert mixed.tokens_per_step == alone.tokens_per_step
    assert mixed.drafted_share == alone.drafted_share
    assert (mixed.plain_tokens, mixed.steps) == (4, 5)


def test_steps_of_a_drafting_method_that_found_nothing_to_draft_count_against_it() -> None:
    found = fold(Figures(), (*completion(), observed(plain_step(3, "r1"), method="ngram")))
    assert found.tokens_per_step == pytest.approx(6 / 3)
    speed = speedup(found, (25.0,))
    assert speed is not None
    assert speed.times == pytest.approx(6 * 25.0 / 125.0)


def test_only_single_undrafted_forwards_are_samples_of_plain_decoding() -> None:
    events = [
        observed(prefill()),
        observed(step()),
        observed(plain_step(2)),
        observed(step(3, tree=None, tokens=(), texts=(), origins=(), forwards=0)),
    ]
    assert figures.plain_samples(events) == (25.0,)


def test_what_is_kept_over_time_is_bounded() -> None:
    found = fold(Figures(), (observed(step(i + 1)) for i in range(3 * RECENT)))
    assert found.steps == 3 * RECENT
    assert {len(values) for values in (found.recent.nodes, found.recent.draft_ms)} == {RECENT}


def test_quantiles_are_of_the_values_themselves() -> None:
    assert figures.quantile((), 0.5) is None
    assert figures.quantile(range(1, 101), 0.5) == 51
    assert figures.quantile((7.0,), 0.95) == 7.0


def test_the_calibration_error_is_zero_where_confidence_is_right() -> None:
    assert figures.calibration_error(Figures()) is None
    right = (*Figures().bins[:5], figures.Bin(10, 5, 5.0), *Figures().bins[6:])
    assert figures.calibration_error(Figures(bins=right)) == 0.0
    wrong = (*Figures().bins[:5], figures.Bin(10, 1, 5.0), *Figures().bins[6:])
    assert figures.calibration_error(Figures(bins=wrong)) == pytest.approx(0.4)


def test_an_end_without_times_adds_none() -> None:
    found = fold(Figures(), [Settled(client="c", document="d", request="r", outcome="kept")])
    assert found.outcomes == {"kept": 1}
    assert found.recent.total_ms == ()
