"""What a step costs on a machine that never is in a bad mood."""

from assistant.engine.cost import Costs

COSTS = Costs(
    machine="even",
    model="any",
    precision="any",
    device="cpu",
    threads=1,
    context=64,
    width=8,
    weight_bytes=None,
    head="any",
    verify_ms={1: 10.0, 8: 12.0, 16: 16.0, 64: 60.0},
    draft_ms={1: 0.5, 8: 4.0},
    spread_ms={},
)
