"""docs/configuration.md says what the code does."""

from pathlib import Path

from tidemark.config.changefeed import Changefeed
from tidemark.config.keys import keys_of
from tidemark.config.reference import reference
from tidemark.config.uri import UriOptions

DOCS = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_docs_are_made_from_the_declarations():
    assert DOCS.read_text(encoding="utf-8") == reference(), (
        "run: python -m tidemark.config.reference > docs/configuration.md"
    )


def names(cls):
    for name, (_, declared) in keys_of(cls).items():
        yield name
        if declared.kind.section is not None:
            yield from names(declared.kind.section)


def test_every_key_is_in_the_reference():
    text = reference()
    for name in (*names(Changefeed), *names(UriOptions)):
        assert f"`{name}`" in text or f".{name}]" in text or f"[{name}]" in text or f".{name}`" in text


def test_every_key_has_a_line_of_documentation():
    def walk(cls):
        for _, declared in keys_of(cls).values():
            assert declared.doc.endswith((".", "…"))
            if declared.kind.section is not None:
                walk(declared.kind.section)

    walk(Changefeed)
    walk(UriOptions)


def test_every_file_key_of_a_uri_option_exists():
    sink = keys_of(Changefeed)["sink"][1].kind.section
    for _, declared in keys_of(UriOptions).values():
        section = sink
        for name in filter(None, declared.file_key.split(".")):
            section = keys_of(section)[name][1].kind.section
