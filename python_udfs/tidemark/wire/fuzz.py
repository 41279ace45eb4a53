"""Fuzz the wire decoders: python -m tidemark.wire.fuzz [--runs N] [--seconds S]

With atheris installed the search is guided by coverage. Without it, inputs of the corpus are mutated at random (the same seed gives the
same inputs), and an input that leads to an answer not seen before is mutated further. An input that breaks a rule of
`fuzz_target` is written to --crashes, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import struct
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

DEFAULT_CORPUS = Path(__file__).parents[3] / "tests" / "fuzz" / "corpus"
DEFAULT_TABLES = DEFAULT_CORPUS.parent / "tables"
MAX_INPUT = 1 << 16

# Numbers at which lengths, counts and signs go wrong.
_EDGES = (
    0,
    1,
    2,
    7,
    15,
    16,
    255,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tidemark.wire.fuzz", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--corpus", type=Path, default=DEFAULT_CORPUS, help="folder of inputs to start from")
    parser.add_argument("--tables", type=Path, default=DEFAULT_TABLES, help="folder of handshakes for rows")
    parser.add_argument(
        "--crashes", type=Path, default=Path("fuzz-crashes"), help="folder for inputs that break a rule"
    )
    parser.add_argument("--runs", type=int, default=100_000, help="inputs to try")
    parser.add_argument("--seconds", type=float, default=60, help="time to spend at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--plain", action="store_true", help="mutate at random even where atheris is installed"
    )
    args = parser.parse_args(argv)
    corpus = [path.read_bytes() for path in sorted(args.corpus.glob("*")) if path.is_file()]
    if not corpus:
        print(f"no inputs in {args.corpus}: give a folder of frames with --corpus", file=sys.stderr)
        return 2
    if not args.plain and _atheris() is not None:
        return _guided(args)
    return _mutate(corpus, args)


def _atheris():
    try:
        import atheris
    except ImportError:
        return None
    return atheris


def _guided(args) -> int:
    atheris = _atheris()
    with atheris.instrument_imports(include=["tidemark.wire"]):
        from tidemark.wire.fuzz_target import check
    _learn_tables(args.tables)
    args.crashes.mkdir(parents=True, exist_ok=True)
    # What the search finds interesting is written to the first folder; the checked-in corpus is only read.
    found = args.crashes / "interesting"
    found.mkdir(exist_ok=True)
    options = [
        f"-runs={args.runs}",
        f"-max_total_time={int(args.seconds)}",
        f"-seed={args.seed or 1}",
        f"-max_len={MAX_INPUT}",
        f"-artifact_prefix={args.crashes}/",
    ]
    atheris.Setup([sys.argv[0], *options, str(found), str(args.corpus)], check)
    atheris.Fuzz()
    return 0


def _learn_tables(folder: Path) -> None:
    from tidemark.wire.fuzz_target import learn_table

    for path in sorted(folder.glob("*")):
        learn_table(path.read_bytes())


def _mutate(corpus: list[bytes], args) -> int:
    from tidemark.wire.fuzz_target import check, check_frame

    _learn_tables(args.tables)
    rng = random.Random(args.seed)
    pool = list(corpus)
    seen: set[str] = set()
    deadline = time.monotonic() + args.seconds
    runs = 0
    while runs < args.runs and time.monotonic() < deadline:
        data = corpus[runs] if runs < len(corpus) else mutated(rng, pool)
        runs += 1
        try:
            outcome = check_frame(data)
            check(data)
        except Exception:
            return _report(data, args.crashes)
        if outcome not in seen:
            seen.add(outcome)
            pool.append(data)
    print(f"{runs} inputs, {len(seen)} different answers, no rule broken")
    return 0


def _report(data: bytes, folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"crash-{hashlib.sha256(data).hexdigest()[:16]}"
    path.write_bytes(data)
    traceback.print_exc()
    print(f"a rule is broken by the {len(data)} bytes in {path}", file=sys.stderr)
    return 1


def mutated(rng: random.Random, pool: list[bytes]) -> bytes:
    data = bytearray(rng.choice(pool))
    for _ in range(rng.randint(1, 4)):
        rng.choice(_MUTATIONS)(rng, data, pool)
    del data[MAX_INPUT:]
    # A header that does not fit its payload is refused at once: mostly, mend it to get further.
    if len(data) >= 16 and rng.random() < 0.8:
        struct.pack_into(">Q", data, 8, len(data) - 16)
    return bytes(data)


def _flip_bit(rng: random.Random, data: bytearray, pool: list[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set_byte(rng: random.Random, data: bytearray, pool: list[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.randrange(256)


def _set_number(rng: random.Random, data: bytearray, pool: list[bytes]) -> None:
    layout = rng.choice((">H", ">I", ">Q", "<I", "<Q"))
    size = struct.calcsize(layout)
    if len(data) >= size:
        number = rng.choice((*_EDGES, len(data), rng.getrandbits(16))) & ((1 << 8 * size) - 1)
        struct.pack_into(layout, data, rng.randrange(len(data) - size + 1), number)


def _cut(rng: random.Random, data: bytearray, pool: list[bytes]) -> None:
    del data[rng.randint(0, len(data)) :]


def _remove(rng: random.Random, data: bytearray, pool: list[bytes]) -> None:
    start = rng.randint(0, len(data))
    del data[start : start + rng.randint(1, 16)]


def _insert(rng: random.Random, data: bytearray, pool: list[bytes]) -> None:
    start = rng.randint(0, len(data))
    data[start:start] = rng.randbytes(rng.randint(1, 16))


def _repeat(rng: random.Random, data: bytearray, pool: list[bytes]) -> None:
    start = rng.randint(0, len(data))
    part = data[start : start + rng.randint(1, 64)]
    data[start:start] = part * rng.randint(1, 8)


def _splice(rng: random.Random, data: bytearray, pool: list[bytes]) -> None:
    other = rng.choice(pool)
    data[rng.randint(0, len(data)) :] = other[rng.randint(0, len(other)) :]


_MUTATIONS: tuple[Callable[[random.Random, bytearray, list[bytes]], None], ...] = (
    _flip_bit,
    _flip_bit,
    _set_byte,
    _set_number,
    _set_number,
    _cut,
    _remove,
    _insert,
    _repeat,
    _splice,
)


if __name__ == "__main__":
    sys.exit(main())
