"""The door: what it sets for its own process before anything heavy is loaded."""

import os

import pytest

import eagle_assist


@pytest.mark.parametrize(
    ("own", "wanted"),
    [
        ({}, "4000"),
        ({"GOMP_SPINCOUNT": "7"}, "7"),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, None),
    ],
)
def test_threads_spin_briefly_unless_the_user_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, own: dict[str, str], wanted: str | None
) -> None:
    monkeypatch.setattr(os, "environ", dict(own))
    eagle_assist.share_processors()
    assert os.environ.get("GOMP_SPINCOUNT") == wanted
