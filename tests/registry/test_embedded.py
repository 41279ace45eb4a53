"""The embedded registry: the rules of the Confluent API, in a folder."""

import json
import multiprocessing
import os
import signal

import pytest

from tidemark.registry.embedded import EmbeddedRegistry
from tidemark.registry.errors import (
    DamagedRegistry,
    IncompatibleSchema,
    InvalidLevel,
    InvalidSchema,
    InvalidVersion,
    NoSubjectLevel,
    SchemaNotFound,
    SubjectNotFound,
    VersionNotFound,
)


def schema(*names, **defaults):
    fields = [{"name": name, "type": "int"} for name in names]
    fields += [{"name": name, "type": "int", "default": value} for name, value in defaults.items()]
    return json.dumps({"type": "record", "name": "r", "fields": fields})


@pytest.fixture
def registry(tmp_path):
    return EmbeddedRegistry(tmp_path / "registry")


def test_ids_count_from_one_and_versions_per_subject(registry):
    assert registry.register("a", schema("x")) == 1
    assert registry.register("b", schema("y")) == 2
    assert registry.register("a", schema("x", y=1)) == 3
    assert (registry.versions("a"), registry.versions("b")) == ([1, 2], [1])
    assert registry.subjects() == ["a", "b"]


def test_a_schema_has_one_id_under_all_subjects(registry):
    assert registry.register("a", schema("x")) == registry.register("b", schema("x")) == 1
    assert [(use.subject, use.version) for use in registry.uses(1)] == [("a", 1), ("b", 1)]


def test_registering_again_changes_nothing(registry):
    registry.register("a", schema("x"))
    registry.register("a", schema("x", y=1))
    assert registry.register("a", schema("x")) == 1
    assert registry.register("a", json.dumps(json.loads(schema("x")), indent=4)) == 1
    assert registry.versions("a") == [1, 2]


def test_what_was_registered_is_found_as_it_was_sent(registry):
    text = schema("x").replace(",", " ,")
    schema_id = registry.register("a", text)
    assert registry.schema(schema_id) == text
    assert registry.version("a", "latest").schema == text
    assert registry.version("a", 1) == registry.lookup("a", schema("x"))


def test_an_incompatible_schema_is_refused_with_subject_and_reason(registry):
    registry.register("a", schema("x"))
    with pytest.raises(IncompatibleSchema, match=r"subject 'a'.*BACKWARD.*'y' without a default.*code 409"):
        registry.register("a", schema("x", "y"))
    assert registry.versions("a") == [1]


def test_the_level_of_a_subject_wins_over_that_of_the_registry(registry):
    assert registry.compatibility() == registry.compatibility("a") == "BACKWARD"
    registry.set_compatibility("NONE", "a")
    assert (registry.compatibility("a"), registry.compatibility("b")) == ("NONE", "BACKWARD")
    registry.register("a", schema("x"))
    registry.register("a", schema("x", "y"))
    with pytest.raises(NoSubjectLevel):
        registry.compatibility("b", own=True)


@pytest.mark.parametrize(
    ("call", "error", "code"),
    [
        (lambda r: r.versions("no"), SubjectNotFound, 40401),
        (lambda r: r.lookup("no", schema("x")), SubjectNotFound, 40401),
        (lambda r: r.version("a", 9), VersionNotFound, 40402),
        (lambda r: r.version("a", "x"), InvalidVersion, 42202),
        (lambda r: r.version("a", 0), InvalidVersion, 42202),
        (lambda r: r.schema(9), SchemaNotFound, 40403),
        (lambda r: r.lookup("a", schema("z")), SchemaNotFound, 40403),
        (lambda r: r.register("a", "{"), InvalidSchema, 42201),
        (lambda r: r.set_compatibility("SOMETIMES"), InvalidLevel, 42203),
        (lambda r: r.register("a", schema("x", "y")), IncompatibleSchema, 409),
    ],
)
def test_errors_have_the_numbers_of_the_api(registry, call, error, code):
    registry.register("a", schema("x"))
    with pytest.raises(error) as caught:
        call(registry)
    assert caught.value.code == code


def test_another_process_sees_what_was_registered(registry, tmp_path):
    registry.register("a", schema("x"))
    other = EmbeddedRegistry(tmp_path / "registry")
    assert other.register("a", schema("x", y=1)) == 2
    assert registry.versions("a") == [1, 2]


def test_a_level_of_the_same_length_is_written_too(registry, tmp_path):
    for level in ("FULL", "NONE", "FULL"):
        registry.set_compatibility(level, "a")
        assert EmbeddedRegistry(tmp_path / "registry").compatibility("a") == level


def test_an_untouched_registry_needs_no_folder(registry, tmp_path):
    assert registry.subjects() == []
    assert not (tmp_path / "registry").exists()


def test_a_damaged_file_is_told(registry, tmp_path):
    registry.register("a", schema("x"))
    path = tmp_path / "registry" / "schemas.json"
    for text in ("", "[]", '{"schemas":{}}', path.read_text()[:-5]):
        path.write_text(text)
        with pytest.raises(DamagedRegistry, match=r"schemas\.json"):
            registry.subjects()


def _register(folder, subject, names, start):
    start.wait()
    registry = EmbeddedRegistry(folder)
    for name in names:
        registry.register(subject, schema(**{name: 0}))


def test_writers_take_turns(tmp_path):
    context = multiprocessing.get_context("fork")
    start = context.Barrier(4)
    workers = [
        context.Process(
            target=_register,
            args=(tmp_path, f"s{number % 2}", [f"n{number}_{step}" for step in range(15)], start),
        )
        for number in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 4
    registry = EmbeddedRegistry(tmp_path)
    assert [len(registry.versions(subject)) for subject in ("s0", "s1")] == [30, 30]
    found = [registry.version(subject, number).id for subject in ("s0", "s1") for number in range(1, 31)]
    assert sorted(found) == list(range(1, 61))


def _register_until_killed(folder, started):
    registry = EmbeddedRegistry(folder)
    for number in range(100_000):
        registry.register("a", schema(**{f"n{number}": 0}))
        started.set()


def test_a_killed_writer_leaves_a_whole_registry_and_no_lock(tmp_path):
    context = multiprocessing.get_context("fork")
    started = context.Event()
    worker = context.Process(target=_register_until_killed, args=(tmp_path, started))
    worker.start()
    assert started.wait(30)
    os.kill(worker.pid, signal.SIGKILL)
    worker.join(30)
    registry = EmbeddedRegistry(tmp_path)
    before = len(registry.versions("a"))
    registry.register("a", schema(last=0))
    assert len(registry.versions("a")) == before + 1
    for number in range(1, before + 2):
        assert registry.schema(registry.version("a", number).id)


def test_a_draft_that_a_crash_left_behind_is_ignored(registry, tmp_path):
    registry.register("a", schema("x"))
    (tmp_path / "registry" / "schemas.json.draft").write_text("{half")
    assert registry.register("a", schema("x", y=1)) == 2
    assert EmbeddedRegistry(tmp_path / "registry").versions("a") == [1, 2]
