"""A text of code in several languages, on which int8 conversion measures how large activations grow."""

PYTHON = '''"""Reads sensor logs and reports the hours in which a pump ran too hot."""

import csv
import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Reading:
    pump: str
    hour: int
    celsius: float


def read_log(path: Path) -> list[Reading]:
    """Parse one file; a line that does not hold three fields raises ValueError with its number."""
    readings = []
    with path.open(newline="", encoding="utf-8") as file:
        for number, row in enumerate(csv.reader(file), start=1):
            if len(row) != 3:
                raise ValueError(f"{path}:{number}: wanted 3 fields, found {len(row)}")
            pump, hour, celsius = row
            readings.append(Reading(pump.strip(), int(hour), float(celsius)))
    return readings


def hot_hours(readings: list[Reading], limit: float = 80.0) -> dict[str, list[int]]:
    by_hour: dict[tuple[str, int], list[float]] = defaultdict(list)
    for reading in readings:
        by_hour[reading.pump, reading.hour].append(reading.celsius)
    hot: dict[str, list[int]] = {}
    for (pump, hour), values in sorted(by_hour.items()):
        if statistics.median(values) > limit:
            hot.setdefault(pump, []).append(hour)
    return hot


class RingBuffer:
    def __init__(self, size):
        self._items = [None] * size
        self._next = 0
        self.count = 0

    def push(self, item):
        self._items[self._next] = item
        self._next = (self._next + 1) % len(self._items)
        self.count = min(self.count + 1, len(self._items))

    def __iter__(self):
        start = self._next - self.count
        for offset in range(self.count):
            yield self._items[(start + offset) % len(self._items)]


if __name__ == "__main__":
    for name, hours in hot_hours(read_log(Path("pumps.csv"))).items():
        print(name, ", ".join(map(str, hours)))
'''

JAVASCRIPT = """import { readFile } from "node:fs/promises";

export class Inventory {
  #items = new Map();

  add(sku, quantity = 1) {
    if (!Number.isInteger(quantity) || quantity <= 0) {
      throw new RangeError(`bad quantity for ${sku}: ${quantity}`);
    }
    this.#items.set(sku, (this.#items.get(sku) ?? 0) + quantity);
    return this;
  }

  get total() {
    return [...this.#items.values()].reduce((sum, n) => sum + n, 0);
  }

  toJSON() {
    return Object.fromEntries(this.#items);
  }
}

// Waits for quiet before it calls, and always with the latest arguments.
export function debounce(callback, milliseconds) {
  let timer = null;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => callback(...args), milliseconds);
  };
}

const main = async () => {
  const rows = JSON.parse(await readFile(process.argv[2], "utf8"));
  const inventory = new Inventory();
  rows.filter((row) => row.active).forEach(({ sku, count }) => inventory.add(sku, count));
  console.log(JSON.stringify(inventory, null, 2));
};

main().catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
"""

TYPESCRIPT = """type Result<T> = { ok: true; value: T } | { ok: false; error: string };

interface Point { readonly x: number; readonly y: number }

export function parsePoint(text: string): Result<Point> {
  const match = /^\\s*(-?\\d+),\\s*(-?\\d+)\\s*$/.exec(text);
  if (!match) return { ok: false, error: `not a point: ${text}` };
  return { ok: true, value: { x: Number(match[1]), y: Number(match[2]) } };
}
"""

C = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 256

struct entry { char *key; int value; struct entry *next; };
static struct entry *table[BUCKETS];

static unsigned hash(const char *key)
{
    unsigned h = 2166136261u;
    while (*key != '\\0')
        h = (h ^ (unsigned char)*key++) * 16777619u;
    return h % BUCKETS;
}

int *lookup(const char *key, int create)
{
    struct entry **slot = &table[hash(key)];
    for (struct entry *e = *slot; e != NULL; e = e->next)
        if (strcmp(e->key, key) == 0)
            return &e->value;
    if (!create)
        return NULL;
    struct entry *e = calloc(1, sizeof *e);
    e->key = strdup(key);
    e->next = *slot;
    *slot = e;
    return &e->value;
}
"""

RUST = """use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq)]
pub enum Token { Number(f64), Plus, Times, Open, Close }

pub fn tokens(source: &str) -> Result<Vec<Token>, String> {
    let mut out = Vec::new();
    let mut chars = source.chars().peekable();
    while let Some(&c) = chars.peek() {
        match c {
            ' ' => { chars.next(); }
            '+' => { out.push(Token::Plus); chars.next(); }
            '*' => { out.push(Token::Times); chars.next(); }
            '0'..='9' => {
                let mut text = String::new();
                while let Some(d) = chars.next_if(|d| d.is_ascii_digit() || *d == '.') {
                    text.push(d);
                }
                out.push(Token::Number(text.parse().map_err(|e| format!("{e}"))?));
            }
            other => return Err(format!("unexpected {other:?}")),
        }
    }
    Ok(out)
}

fn tally(words: &[&str]) -> BTreeMap<String, usize> {
    words.iter().fold(BTreeMap::new(), |mut map, word| {
        *map.entry(word.to_lowercase()).or_default() += 1;
        map
    })
}
"""

GO = """package queue

import (
\t"context"
\t"errors"
\t"sync"
)

var ErrClosed = errors.New("queue: closed")

type Job struct {
\tID      int64  `json:"id"`
\tPayload []byte `json:"payload,omitempty"`
}

func (q *Queue) Run(ctx context.Context, workers int, handle func(Job) error) error {
\tvar wg sync.WaitGroup
\tfor i := 0; i < workers; i++ {
\t\twg.Add(1)
\t\tgo func() {
\t\t\tdefer wg.Done()
\t\t\tfor job := range q.jobs {
\t\t\t\tif err := handle(job); err != nil {
\t\t\t\t\tq.failed <- job
\t\t\t\t}
\t\t\t}
\t\t}()
\t}
\twg.Wait()
\treturn ctx.Err()
}
"""

JAVA = """public final class Account {
    private final String owner;
    private long cents;

    public Account(String owner, long cents) {
        this.owner = Objects.requireNonNull(owner, "owner");
        this.cents = cents;
    }

    /** Moves money, or throws without having moved any. */
    public synchronized void withdraw(long amount) throws InsufficientFundsException {
        if (amount > cents) {
            throw new InsufficientFundsException(owner + " lacks " + (amount - cents) + " cents");
        }
        cents -= amount;
    }
}
"""

OTHERS = """SELECT c.name, COUNT(*) AS orders, SUM(o.total) AS spent
FROM customers AS c
LEFT JOIN orders AS o ON o.customer_id = c.id AND o.placed_at >= '2024-01-01'
GROUP BY c.name
HAVING SUM(o.total) > 100
ORDER BY spent DESC;

#!/bin/sh
set -eu
for file in "$@"; do
    case "$file" in
        *.gz) gzip -dc "$file" ;;
        *) cat "$file" ;;
    esac
done | sort | uniq -c | sort -rn | head -n 20

<!doctype html>
<html lang="en">
  <head><meta charset="utf-8"><title>Stock</title></head>
  <body>
    <ul class="items">{% for item in items %}<li data-sku="{{ item.sku }}">{{ item.name }}</li>{% endfor %}</ul>
  </body>
</html>

server:
  host: 0.0.0.0
  port: 8080
  workers: 4
logging: {level: info, file: /var/log/app.log}

# Release notes

* The parser keeps comments, and `--strict` refuses unknown keys.
* Fixed: a list that was changed while it was walked.
"""

CALIBRATION_TEXTS = (PYTHON, JAVASCRIPT, TYPESCRIPT + C, RUST + GO, JAVA + OTHERS)
"""each is encoded on its own and follows the one before it"""
