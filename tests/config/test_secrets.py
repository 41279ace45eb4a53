"""A secret is never shown."""

import pytest

from tidemark.config import ConfigError, check, load, redact, redact_uri
from tidemark.config.changefeed import Changefeed
from tidemark.config.keys import keys_of
from tidemark.config.project_vars import check_project_vars
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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("kafka:/127.0.0.1:9092/t?protocol=csv", "kafka:/127.0.0.1:9092/t?protocol=csv"),
        ("127.0.0.1:3306", "127.0.0.1:3306"),
        ("mysql//root:hunter2@h:3306/", "mysql//root:xxxxx@h:3306/"),
        ("mysql:/root:hun@ter:2@h/", "mysql:/root:xxxxx@h/"),
        ("root:/hunter2@h", "xxxxx@h"),
        ("mysql%3A%2F%2Froot%3Ahunter2%40h", "mysql://root:xxxxx@h"),
        (
            "s3:/b/p?protocol=csv&secret-access-key=hunter2&region=eu",
            "s3:/b/p?protocol=csv&secret-access-key=xxxxx&region=eu",
        ),
    ],
)
def test_a_uri_that_cannot_be_taken_apart_is_recognisable_and_shows_no_secret(text, shown):
    (finding,) = check(None, text)
    assert (finding.key, finding.value, finding.message) == ("sink-uri", repr(shown), "is not a URI")
    (finding,) = [found for found in check_project_vars({}, {"sink_uri": text}, {}) if "URI" in found.message]
    assert finding.value == repr(shown)


def test_what_the_environment_holds_is_not_shown_even_where_it_is_no_uri(monkeypatch):
    monkeypatch.setenv("SINK", "hunter2")
    (finding,) = check_project_vars({}, {"sink_uri": "${SINK}"}, {})
    assert str(finding).startswith("sink_uri = '${SINK}': is not a URI")


@pytest.mark.parametrize(
    ("uri", "where"),
    [
        ("mysql://root:pw@h/", "the password"),
        ("s3://b/p?protocol=csv&access-key=a&secret-access-key=b&region=eu", "access-key, secret-access-key"),
        ("mysql://root:p?w@h/?ssl-key=k&password-env=P", "the password, ssl-key"),
        ("kafka://h/t?protocol=avro&schema-registry=http%3A%2F%2Fu%3Apw%40h", "schema-registry"),
        ("s3://b/p?protocol=csv&access-key=${A}&session-token=b", "session-token"),
    ],
)
def test_a_secret_in_a_var_is_refused_by_name(uri, where, monkeypatch):
    monkeypatch.setenv("A", "a")
    said = [str(found) for found in check_project_vars({}, {"sink_uri": uri}, {}) if found.key == "sink_uri"]
    assert said[0].startswith(f"sink_uri: holds a secret ({where}), and dbt writes vars")
