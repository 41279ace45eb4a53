"""Taking a sink URI apart."""

import pytest

from tidemark.config import check, load


def test_user_password_host_and_path_are_percent_decoded():
    uri = load(None, "mysql://r%40ot:p%40ss%3A%2F%25@db.example:4000/a%20b").uri
    assert (uri.scheme, uri.user, uri.password, uri.host, uri.port, uri.path) == (
        "mysql",
        "r@ot",
        "p@ss:/%",
        "db.example",
        4000,
        "/a b",
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("MySQL://h/", "mysql"),
        ("tidb://h:4000/", "mysql"),
        ("kafka://h:1/t?protocol=simple", "kafka"),
        ("pulsar+ssl://h:1/t?protocol=canal-json", "pulsar"),
        ("s3://bucket/prefix?protocol=csv", "storage"),
        ("gs://bucket?protocol=csv", "storage"),
        ("azblob://c/p?protocol=csv", "storage"),
        ("file:///x?protocol=csv", "storage"),
        ("blackhole://", "blackhole"),
    ],
)
def test_sink_kinds(text, kind):
    assert load(None, text).sink_kind == kind


def test_a_full_pulsar_topic_in_the_path():
    assert (
        load(None, "pulsar://h:6650/persistent://a/b/c?protocol=canal-json").default_topic
        == "persistent://a/b/c"
    )


def test_ipv6_hosts():
    uri = load(None, "mysql://root@[::1]:4000/").uri
    assert (uri.host, uri.port) == ("[::1]", 4000)
    assert load(None, "mysql://root@[::1]/").uri.port is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no uri", "is not a URI"),
        ("file:relative", "is not a URI"),
        ("http://h/", "has an unknown scheme"),
        ("mysq://h/", "has an unknown scheme; did you mean mysql?"),
        ("mysql://h:port/", "has a port that is not a number"),
        ("mysql://h:99999/", "has a port that is not a number"),
        ("mysql://u:50%@h/", "has a % that is not followed by two hex digits"),
    ],
)
def test_bad_uris(text, message):
    assert check(None, text)[0].message.startswith(message)


def test_booleans_are_those_of_go():
    for text in ("1", "t", "T", "TRUE", "true", "True"):
        assert load(
            None, f"kafka://h:1/t?protocol=avro&schema-registry=x&enable-tidb-extension={text}"
        ).uri.options.enable_tidb_extension
    (finding,) = check(None, "kafka://h:1/t?protocol=canal-json&enable-tidb-extension=yes")
    assert finding.key == "sink-uri?enable-tidb-extension"


def test_option_values_are_percent_decoded():
    options = load(
        None, "kafka://h:1/t?protocol=avro&schema-registry=http%3A%2F%2Fr%3A8081%2Fa+b"
    ).uri.options
    assert options.schema_registry == "http://r:8081/a b"


def test_an_option_given_twice_is_an_error():
    (finding,) = check(None, "kafka://h:1/t?protocol=canal-json&protocol=avro")
    assert (finding.key, finding.message) == ("sink-uri?protocol", "is given twice")


def test_an_empty_option_is_not_given():
    assert load(None, "mysql://h/?time-zone=&safe-mode=").uri.options.time_zone == ""


@pytest.mark.parametrize(
    ("uri", "option"),
    [
        ("s3://b/p?protocol=csv&", "role-arn=arn:aws:iam::1:role/x"),
        ("s3://b/p?protocol=csv&", "external-id=x"),
        ("azblob://c/p?protocol=csv&", "encryption-scope=x"),
        ("azblob://c/p?protocol=csv&", "access-tier=Cool"),
        ("gcs://b/p?protocol=csv&", "predefined-acl=private"),
        ("gs://b/p?protocol=csv&", "storage-class=NEARLINE"),
    ],
)
def test_options_that_are_not_applied_are_errors(uri, option):
    (finding,) = check(None, uri + option)
    assert (finding.severity, finding.key) == ("error", f"sink-uri?{option.partition('=')[0]}")
    assert "does not apply it" in finding.message
    assert check(None, uri.rstrip("?&")) == []


@pytest.mark.parametrize(
    ("uri", "option"),
    [
        ("mysql://h/?", "safe-mode=true"),
        ("s3://b/p?protocol=csv&", "provider=ceph"),
        ("s3://b/p?protocol=csv&", "use-accelerate-endpoint=true"),
        ("s3://b/p?protocol=csv&", "flush-interval=1m"),
    ],
)
def test_options_that_change_nothing_are_noted(uri, option):
    (finding,) = check(None, uri + option)
    assert (finding.severity, finding.key) == ("note", f"sink-uri?{option.partition('=')[0]}")
    assert "changes nothing" in finding.message
    assert check(None, uri.rstrip("?&")) == []


@pytest.mark.parametrize(
    "option", ["endpoint=http://here", "storage-class=GLACIER", "use-accelerate-endpoint=0"]
)
def test_options_that_are_applied_are_not_noted(option):
    assert check(None, f"s3://b/p?protocol=csv&{option}") == []


def test_an_endpoint_of_azure_needs_the_account():
    (finding,) = check(None, "azblob://c/p?protocol=csv&endpoint=http://here")
    assert (finding.severity, finding.key) == ("error", "sink-uri?endpoint")
    assert check(None, "azblob://c/p?protocol=csv&endpoint=http://here&account-name=a&account-key=k") == []


def test_a_key_to_encrypt_with_is_an_error():
    (finding,) = check(None, "azblob://c/p?protocol=csv&encryption-key=s3cret")
    assert (finding.severity, finding.key) == ("error", "sink-uri?encryption-key")
    assert "not encrypted" in finding.message
    assert "s3cret" not in str(finding)


def test_object_store_options_with_underscores():
    options = load(
        None, "s3://b/p?protocol=csv&access_key=a&secret_access_key=b&force_path_style=false"
    ).uri.options
    assert (options.access_key, options.secret_access_key, options.force_path_style) == ("a", "b", False)
