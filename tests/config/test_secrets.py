"""A secret is never shown."""

import pytest

from tidemark.config import ConfigError, check, load, redact, redact_uri
from tidemark.config.changefeed import Changefeed
from tidemark.config.keys import keys_of
from tidemark.config.secrets import is_secret_name
from tidemark.config.uri import UriOptions

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("mysql://root:hunter2@h:3306/", "mysql://root:xxxxx@h:3306/"),
        ("mysql://root:hun@ter2@h:3306/", "mysql://root:xxxxx@h:3306/"),
        ("mysql://root:hun/ter2#?@h:3306/", "mysql://root:xxxxx@h:3306/"),
        ("mysql://:hunter2@h/", "mysql://:xxxxx@h/"),
        ("mysql://root@h:3306/?a=b@c", "mysql://root@h:3306/?a=b@c"),
        ("kafka://h:9092,g:9092/t?x=a@b", "kafka://h:9092,g:9092/t?x=a@b"),
        ("s3://b/p?access-key=hunter2&region=eu", "s3://b/p?access-key=xxxxx&region=eu"),
        (
            "s3://b?secret_access_key=hunter2&session-token=hunter2",
            "s3://b?secret_access_key=xxxxx&session-token=xxxxx",
        ),
        ("kafka://h/t?sasl-user=u&sasl-password=hunter2", "kafka://h/t?sasl-user=u&sasl-password=xxxxx"),
        ("azblob://c?account-key=hunter2&sig=hunter2", "azblob://c?account-key=xxxxx&sig=xxxxx"),
        (
            "kafka://h/t?schema-registry=http://u:hunter2@r:8081",
            "kafka://h/t?schema-registry=http://u:xxxxx@r:8081",
        ),
        (
            "kafka://h/t?schema-registry=http%3A%2F%2Fu%3Ahunter2%40r",
            "kafka://h/t?schema-registry=http%3A%2F%2Fu%3Axxxxx%40r",
        ),
        ("file:///x?protocol=csv", "file:///x?protocol=csv"),
    ],
)
def test_redact_uri(uri, shown):
    assert redact_uri(uri) == shown


def test_redact_finds_uris_and_options_in_a_text():
    text = "cannot open 'mysql://root:hunter2@h/' or s3://b?secret-access-key=hunter2 with password = \"hunter2\", region=eu"
    assert (
        redact(text)
        == "cannot open 'mysql://root:xxxxx@h/' or s3://b?secret-access-key=xxxxx with password = xxxxx, region=eu"
    )


@pytest.mark.parametrize(
    "uri",
    [
        f"mysql://root:{SECRET}@h:3306/",
        f"mysql://root:{SECRET}@h:x/?bogus=1",
        f"mysql://root:{SECRET}%@h:1/",
        f"mysql://root:a/{SECRET}@h:1/",
        f"mysql://root:a'{SECRET}@h:x/",
        f'mysql://root:a" {SECRET}@h:x/',
        f"bogus://root:{SECRET}@h/",
        f"no-uri root:{SECRET}@h password={SECRET}",
        f"s3://b/p?protocol=csv&secret-access-key={SECRET}&secret-acces-key={SECRET}&session-token=%{SECRET}",
        f"s3://b/p?protocol=csv&access-key={SECRET}&access-key={SECRET}&passwd={SECRET}",
        f"kafka://h:1/?protocol=avro&schema-registry=http://u:{SECRET}@r&sasl-password={SECRET}&key={SECRET}",
    ],
)
def test_no_finding_error_or_repr_shows_a_secret_of_a_uri(uri):
    assert SECRET not in "\n".join(str(finding) + str(finding.as_dict()) for finding in check(None, uri))
    try:
        shown = repr(load(None, uri))
    except ConfigError as error:
        shown = f"{error} {error!r}"
    assert SECRET not in shown


def test_no_finding_error_or_repr_shows_a_secret_of_the_file():
    feed = {
        "consistent": {"storage": f"s3://b?secret-access-key={SECRET}"},
        "sink": {
            "schema-registry": f"http://u:{SECRET}@r",
            "kafka-config": {
                "sasl-password": SECRET,
                "key": SECRET,
                "glue-schema-registry-config": {
                    "secret-access-key": SECRET,
                    "token": SECRET,
                    "access-key": SECRET,
                },
            },
            "pulsar-config": {"authentication-token": SECRET, "basic-pasword": SECRET},
        },
    }
    findings = check(feed, "kafka://h:1/t?protocol=canal-json&schema-registry=http://v:hunter2@r")
    assert SECRET not in "\n".join(map(str, findings))
    del (
        feed["sink"]["pulsar-config"]["basic-pasword"],
        feed["sink"]["kafka-config"]["glue-schema-registry-config"],
    )
    assert SECRET not in repr(load(feed, "kafka://h:1/t?protocol=canal-json"))


def test_a_secret_of_the_wrong_type_is_not_shown():
    (error,) = check({"sink": {"kafka-config": {"sasl-password": [SECRET]}}})
    assert str(error) == "sink.kafka-config.sasl-password = xxxxx: is not a text; allowed: a text"


def every_key(cls):
    for name, (item, declared) in keys_of(cls).items():
        if declared.kind.section is None:
            yield name, item, declared
        else:
            yield from every_key(declared.kind.section)


@pytest.mark.parametrize("cls", [Changefeed, UriOptions])
def test_every_key_with_a_secret_name_is_declared_secret(cls):
    open_keys = {
        name for name, item, declared in every_key(cls) if is_secret_name(name) and not declared.secret
    }
    # Paths, switches and names of variables, not secrets.
    assert open_keys <= {"output-row-key", "output-handle-key", "credentials-file", "password-env"}


@pytest.mark.parametrize("cls", [Changefeed, UriOptions])
def test_secret_keys_stay_out_of_repr(cls):
    assert all(not item.repr for _, item, declared in every_key(cls) if declared.secret)
