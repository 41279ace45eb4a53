"""The fuzzer runs, finds nothing, and would report what it finds."""

import random

import pytest

from tidemark.wire import fuzz, fuzz_target
from tidemark.wire.errors import WireError
from tidemark.wire.registry import decode

CORPUS = sorted(fuzz.DEFAULT_CORPUS.glob("*"))


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_corpus_breaks_no_rule(path):
    fuzz_target.check(path.read_bytes())


def test_tables_of_the_corpus_make_rows_readable():
    for path in fuzz.DEFAULT_TABLES.glob("*"):
        fuzz_target.learn_table(path.read_bytes())
    batches = [path.read_bytes() for path in CORPUS if path.name.startswith("batch_dml_alltypes")]
    assert len(batches) == 12
    assert all(decode(batch).dispatcher_id in fuzz_target.TABLES for batch in batches)


def test_corpus_has_every_event_type():
    types = {path.read_bytes()[5] for path in CORPUS if len(path.read_bytes()) >= 16}
    assert types >= set(range(13))


def test_mutated_corpus_breaks_no_rule(capsys):
    assert fuzz.main(["--plain", "--runs", "1500", "--seconds", "20"]) == 0
    assert "no rule broken" in capsys.readouterr().out


def test_same_seed_gives_the_same_inputs():
    pool = [path.read_bytes() for path in CORPUS]
    first, second = random.Random(5), random.Random(5)
    assert [fuzz.mutated(first, pool) for _ in range(50)] == [fuzz.mutated(second, pool) for _ in range(50)]


def test_broken_rule_is_reported_with_its_input(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(fuzz_target, "encode", lambda event: 1 / 0)
    folder = tmp_path / "crashes"
    assert fuzz.main(["--plain", "--runs", "3", "--crashes", str(folder)]) == 1
    (crash,) = folder.iterdir()
    assert crash.read_bytes() == CORPUS[0].read_bytes()
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_answers_other_than_wire_errors_are_not_caught(monkeypatch):
    def broken(frame):
        raise KeyError("surprise")

    monkeypatch.setattr(fuzz_target, "decode", broken)
    with pytest.raises(KeyError):
        fuzz_target.check_frame(b"anything")
    assert not issubclass(KeyError, WireError)


def test_empty_corpus_is_told(tmp_path, capsys):
    assert fuzz.main(["--plain", "--corpus", str(tmp_path)]) == 2
    assert "--corpus" in capsys.readouterr().err
