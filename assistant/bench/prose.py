"""The words of docs/benchmarks.md; its figures come from records alone."""

from assistant.bench.records import Record


def missing(name: str) -> str:
    """What stands where a record is not there."""
    return f"Not measured yet: `{name}`.\n"


def heading(record: Record) -> str:
    """What was measured, on how much, when, and by which command."""
    result = record.result
    about = f"{result['model']}, {result['precision']}"
    if "tasks" in result:
        about += f", {result['tasks']} tasks of at most {result['max_tokens']} tokens"
    if "times" in result:
        about += f"; times {result['times']}"
    return f"{about} ({record.date}):\n\n    {record.command}\n"


OPENING = """\
# Benchmarks

Written by `eagle-assist bench report` from the records in [`benchmarks/`](benchmarks); each holds its command, date and
machine beside the figures. `scripts/bench PATH/TO/HumanEval.jsonl.gz` measures everything again. The tasks are
HumanEval's (MIT licence, openai/human-eval), their prompts continued greedily.

How to read the tables:

- **Tokens a second** and the **speed-up** count the tokens after the first and the time they took; the speed-up is over
  plain decoding on the same task in the same run. **With prefill** is the ratio of total rates, prompts included.
- A run takes every task by every method in turn, in an order that rotates from task to task, so that a busy minute of
  the machine strikes all alike. Tokens a second, speed-up and milliseconds a step are medians over the tasks, so that a
  task during which the machine stalled does not move them; in parentheses the first and third quartile.
- **Tokens a step** are tokens after the first (a stop token counts as one) per forward of the target. **Identical**
  counts tasks whose tokens are plain decoding's. Where linears depend on the batch (float32, bfloat16) the two best
  logits may change places; such a difference is a *tie* when a fresh forward finds the choices within 1e-4 of each
  other.
"""

SPEED = """\
## Speed beside other programs

The same weights, prompts (as token ids), stop tokens and threads. `transformers` is its `generate` on the dequantized
weights, `transformers-lookup` the same with its prompt lookup; `llama.cpp` reads the 4-bit file itself through
llama-cpp-python. Their tokens are not compared: their arithmetic is another.
"""

TREES = """\
## Draft trees

`@N` bounds the draft tokens verified in one step. Acceptance by depth: of the steps whose path came so far and had a
draft below, the share in which one was accepted, for depth 1, 2, and so on. The first table is of the head that ships,
on one thread while the other core was busy; the second, with every method, of the weak head that it replaced.
"""

ABLATION = """\
## Reranking, and what nodes are ranked by

Without reranking every level gets an equal share of the nodes; ranking by confidence orders nodes by the least
confidence on their path where EAGLE-2 multiplies all of them.
"""

EXACT = """\
## Exactness

Every method against plain decoding, token by token. int8's forward gives a row the same bits whatever shares its batch,
so nothing may differ there.
"""

CHAINS = """\
## Chains: expected against measured

A chain of K drafts, each accepted with probability a whatever came before, gives (1 - a^(K+1)) / (1 - a) tokens a step
(Leviathan et al. 2023, equation 1). With the acceptance that each row measured over all its drafts the formula should
meet the measurement; with the first draft's it shows what a head would reach that did not tire with depth.
"""

HEADS = """\
## What makes a draft head

Heads that differ in one thing, trained alike on the features of one run and judged by simulation: EAGLE-2 trees (depth
6, width 8) drawn at every place of held-out texts that the target wrote itself, accepted where they are that text.
"""

HEAD_TITLES = {
    "data": "Training tokens, one step against multi-step",
    "inputs": "What the head is shown",
    "estimated": "Steps of alignment, and acceptance by estimated features",
    "vocabulary": "Size of the draft vocabulary",
    "mlp": "Neurons of the MLP",
    "start": "Weights at the start",
    "written": "Share of text that the target wrote",
}

COSTS = """\
## What a step costs

Milliseconds of one forward of the target over n rows, a tree's mask among them, and of drafting to a depth with every
level expanded in full. Medians; quartiles are in the plot. GB/s are the weights read in a forward of one row.
"""

QUALITY = """\
## What a precision costs in quality

Pass@1: one greedy completion a task, run against its tests in a sandbox, with Wilson's 95 % interval. Agreement: the
same source text forced through both models; how often the best token is the same (in parentheses: quartiles over
windows of up to 512 tokens), and the mean KL divergence and loss in nats a token; in parentheses behind the loss, the
reference's.
"""

POSITIONS = """\
## Trees by kind of code

The first step's tree at places in source files that a rule labels, without asking a model: a line is *boilerplate*
where it stood before in its file, *logic* where not even its shape did (names, numbers and quoted text made alike), and
it decides or computes something. *Width* is the most nodes on one level; *entropy*, in nats, is the target's
over the first token. *By chance* is how probable so large a difference of means is when labels are drawn anew.
"""

TEMPERATURE = """\
## Temperatures

Adaptive trees and plain decoding draw with the same seed, task by task in turn; the drawn texts differ, so rates are
compared.
"""

GROWTH = """\
## Growth with what is read

Behind the same places of source files, with more and more of the text before them. *Against the shortest*: plain
decoding's milliseconds a token over those of the first row. *Identical*: places where adaptive trees write plain
decoding's tokens.
"""
