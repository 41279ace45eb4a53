# ruff: noqa: RUF009 - key() and section() make dataclass fields
"""The sink URI.

    uri := scheme://[user[:password]@][host[:port][,host:port…]][/path][?option=value&…]

User, password, path and options may be percent-encoded. The options that Tidemark reads are fields of `UriOptions`; those that only tune
a running TiCDC are accepted and ignored with a note. Where the changefeed file has a key for the same thing, the URI wins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import unquote, unquote_plus

from tidemark.config.findings import HIDDEN, Findings
from tidemark.config.keys import (
    BOOL,
    DURATION,
    INT,
    TEXT,
    integer,
    key,
    keys_of,
    note_effect,
    read_value,
    tuning,
)
from tidemark.config.secrets import is_secret_name, redact_unparsed, redact_uri
from tidemark.config.sink import (
    ALWAYS_SAFE,
    ATOMICITY,
    AVRO_FILE_FORMAT,
    BIGINT_UNSIGNED_MODE,
    COMPRESSION,
    DECIMAL_MODE,
    ENCODING_FORMAT,
    MISSING_FILES,
    NO_BEFORE,
    NO_FLUSH,
    PROTOCOL,
    SASL_MECHANISM,
)
from tidemark.config.suggest import nearest, nearest_name

KIND_OF_SCHEME = {
    "mysql": "mysql",
    "mysql+ssl": "mysql",
    "tidb": "mysql",
    "tidb+ssl": "mysql",
    "kafka": "kafka",
    "kafka+ssl": "kafka",
    "pulsar": "pulsar",
    "pulsar+ssl": "pulsar",
    "pulsar+http": "pulsar",
    "pulsar+https": "pulsar",
    "file": "storage",
    "s3": "storage",
    "gcs": "storage",
    "gs": "storage",
    "azblob": "storage",
    "azure": "storage",
    "noop": "storage",
    "blackhole": "blackhole",
}
NO_SINK = "none"
NOTHING_KEPT = "takes every row and keeps none: nothing is written"
NO_ROLE = "no role is assumed; give the credentials of the role, or a profile that assumes it"

DEFAULT_FILE_SIZE = 64 * 1024 * 1024
DEFAULT_MAX_TXN_ROW = 2048
DEFAULT_COMMIT_TS_COLUMN = "_tidb_commit_ts"
DEFAULT_MAX_MESSAGE_BYTES = 10 * 1024 * 1024


@dataclass(frozen=True)
class UriOptions:
    """The options of the sink URI, each with the value in force: the URI's, else the changefeed file's, else the default."""

    protocol: str = key(
        PROTOCOL,
        "",
        "Form of messages or files; flat-avro is avro, default is open-protocol.",
        file_key="protocol",
    )
    transaction_atomicity: str = key(
        ATOMICITY,
        "none",
        "none splits large transactions, table keeps those of one table whole.",
        file_key="transaction-atomicity",
    )
    # Messages
    enable_tidb_extension: bool = key(
        BOOL,
        False,
        "Append TiDB's own fields to messages.",
        file_key="kafka-config.codec-config.enable-tidb-extension",
    )
    max_batch_size: int = key(
        integer(1),
        16,
        "Rows in one open protocol message.",
        file_key="kafka-config.codec-config.max-batch-size",
    )
    max_message_bytes: int = key(
        integer(1),
        DEFAULT_MAX_MESSAGE_BYTES,
        "Largest message in bytes.",
        file_key="kafka-config.max-message-bytes",
    )
    content_compatible: bool = key(
        BOOL, False, "canal-json: messages as the official Canal makes them.", file_key="content-compatible"
    )
    only_output_updated_columns: bool = key(
        BOOL,
        False,
        "Old values of updates hold changed columns only.",
        file_key="only-output-updated-columns",
    )
    output_row_key: bool = key(
        BOOL,
        False,
        "canal-json with enable-tidb-extension: add the row key.",
        file_key="kafka-config.codec-config.output-row-key",
    )
    debezium_disable_schema: bool = key(
        BOOL, False, "Debezium: leave out the schema.", file_key="debezium-disable-schema"
    )
    encoding_format: str = key(
        ENCODING_FORMAT,
        "json",
        "Form of the simple protocol.",
        file_key="kafka-config.codec-config.encoding-format",
    )
    # Avro
    schema_registry: str = key(
        TEXT, "", "Endpoint of the schema registry.", secret=True, file_key="schema-registry"
    )
    avro_decimal_handling_mode: str = key(
        DECIMAL_MODE,
        "precise",
        "DECIMAL as bytes or as text.",
        file_key="kafka-config.codec-config.avro-decimal-handling-mode",
    )
    avro_bigint_unsigned_handling_mode: str = key(
        BIGINT_UNSIGNED_MODE,
        "long",
        "BIGINT UNSIGNED as long (may overflow) or as text.",
        file_key="kafka-config.codec-config.avro-bigint-unsigned-handling-mode",
    )
    avro_enable_watermark: bool = key(
        BOOL,
        False,
        "Send DDL and checkpoints as Avro too.",
        file_key="kafka-config.codec-config.avro-enable-watermark",
    )
    avro_include_before_value: bool = key(
        BOOL,
        False,
        "Send the old row in Avro's field _ticdc_before.",
        unapplied=NO_BEFORE,
        file_key="kafka-config.codec-config.avro-include-before-value",
    )
    # Kafka and Pulsar
    partition_num: int | None = key(
        integer(1),
        None,
        "Partitions that rows are spread over; without it, those of the topic.",
        file_key="kafka-config.partition-num",
    )
    auto_create_topic: bool = key(
        BOOL, True, "Kafka: create topics that do not exist.", file_key="kafka-config.auto-create-topic"
    )
    replication_factor: int = key(
        integer(1),
        1,
        "Kafka: replicas of a topic that is created.",
        file_key="kafka-config.replication-factor",
    )
    compression: str = key(
        COMPRESSION, "none", "Kafka: compression of producer batches.", file_key="kafka-config.compression"
    )
    kafka_client_id: str = key(
        TEXT, "", "Kafka: name shown to the brokers.", file_key="kafka-config.kafka-client-id"
    )
    dial_timeout: timedelta = key(
        DURATION,
        timedelta(seconds=10),
        "Kafka: how long an answer of the brokers is waited for.",
        file_key="kafka-config.dial-timeout",
    )
    sasl_user: str = key(TEXT, "", "Kafka: SASL user.", file_key="kafka-config.sasl-user")
    sasl_password: str = key(
        TEXT, "", "Kafka: SASL password.", secret=True, file_key="kafka-config.sasl-password"
    )
    sasl_mechanism: str = key(
        SASL_MECHANISM,
        "",
        "Kafka: SASL mechanism; PLAIN when only a user is given. GSSAPI and OAUTHBEARER are known, but no client for them is built in.",
        file_key="kafka-config.sasl-mechanism",
    )
    enable_tls: bool = key(BOOL, False, "Kafka: use TLS.", file_key="kafka-config.enable-tls")
    ca: str = key(TEXT, "", "Kafka: file of the certificate authority.", file_key="kafka-config.ca")
    cert: str = key(TEXT, "", "Kafka: certificate file.", file_key="kafka-config.cert")
    tls_key: str = key(TEXT, "", "Kafka: key file.", name="key", secret=True, file_key="kafka-config.key")
    insecure_skip_verify: bool = key(
        BOOL,
        False,
        "Kafka: do not verify the certificate of the brokers.",
        file_key="kafka-config.insecure-skip-verify",
    )
    # Storage
    file_size: int = key(
        INT,
        DEFAULT_FILE_SIZE,
        "A data file is closed at this many bytes, 1 KiB to 512 MiB.",
        file_key="cloud-storage-config.file-size",
    )
    flush_interval: timedelta = key(
        DURATION,
        timedelta(seconds=5),
        "A data file is closed after this long, 100ms to 10m.",
        moot=NO_FLUSH,
        file_key="cloud-storage-config.flush-interval",
    )
    avro_file_format: str = key(
        AVRO_FILE_FORMAT,
        "container",
        "Avro files: container for Avro's own files, messages for the messages that Kafka would get.",
    )
    missing_files: str = key(
        MISSING_FILES,
        "fail",
        "Data files of a tree that are not there any more: fail, or accept, where they are removed on purpose.",
    )
    use_table_id_as_path: bool = key(
        BOOL,
        False,
        "Table ids instead of names as folders.",
        file_key="cloud-storage-config.use-table-id-as-path",
    )
    # Database
    safe_mode: bool = key(
        BOOL,
        False,
        "Write REPLACE instead of INSERT and UPDATE.",
        moot=ALWAYS_SAFE,
        file_key="safe-mode",
    )
    time_zone: str = key(TEXT, "", "Time zone of the downstream session.", file_key="mysql-config.time-zone")
    max_txn_row: int = key(
        integer(1),
        DEFAULT_MAX_TXN_ROW,
        "Rows of one downstream transaction.",
        file_key="mysql-config.max-txn-row",
    )
    worker_count: int | None = key(
        integer(1),
        None,
        "Database: connections, 4 without it. Other sinks ignore it.",
        file_key="mysql-config.worker-count",
    )
    allow_non_tidb: bool = key(
        BOOL,
        False,
        "Database, with enable-active-active: the server may be MySQL or MariaDB; without it, any other server than TiDB is refused.",
    )
    commit_ts_column: str = key(
        TEXT,
        DEFAULT_COMMIT_TS_COLUMN,
        "Database, with enable-active-active: the column that downstream tables have the commit ts of local writes in.",
    )
    password_env: str = key(TEXT, "", "Name of the environment variable that holds the password.")
    ssl_ca: str | None = key(
        TEXT, None, "Database: file of the certificate authority.", file_key="mysql-config.ssl-ca"
    )
    ssl_cert: str | None = key(TEXT, None, "Database: certificate file.", file_key="mysql-config.ssl-cert")
    ssl_key: str | None = key(TEXT, None, "Database: key file.", secret=True, file_key="mysql-config.ssl-key")
    timeout: timedelta | None = key(
        DURATION, None, "Database: timeout to connect.", file_key="mysql-config.timeout"
    )
    write_timeout: timedelta | None = key(
        DURATION, None, "Database: timeout to write.", file_key="mysql-config.write-timeout"
    )
    read_timeout: timedelta | None = key(
        DURATION, None, "Database: timeout to read.", file_key="mysql-config.read-timeout"
    )
    # Access to an object store
    region: str = key(TEXT, "", "S3: region.")
    endpoint: str = key(TEXT, "", "S3, GCS, Azure: endpoint.")
    access_key: str = key(TEXT, "", "S3: access key id.", secret=True)
    secret_access_key: str = key(TEXT, "", "S3: secret access key.", secret=True)
    session_token: str = key(TEXT, "", "S3: session token.", secret=True)
    force_path_style: bool = key(BOOL, True, "S3: bucket in the path.")
    provider: str = key(TEXT, "", "S3: vendor of the store.", moot="all are spoken to in the same way")
    role_arn: str = key(TEXT, "", "S3: role to assume.", unapplied=NO_ROLE)
    external_id: str = key(TEXT, "", "S3: external id of the role.", secret=True, unapplied=NO_ROLE)
    profile: str = key(TEXT, "", "S3: profile of the shared credentials file.")
    credentials_file: str = key(TEXT, "", "GCS: file of credentials.")
    account_name: str = key(TEXT, "", "Azure: account.")
    account_key: str = key(TEXT, "", "Azure: key.", secret=True)
    sas_token: str = key(TEXT, "", "Azure: shared access signature.", secret=True)
    encryption_key: str = key(
        TEXT,
        "",
        "Azure: encryption key. An error, since Tidemark would write files that are not encrypted with it.",
        secret=True,
    )
    encryption_scope: str = key(
        TEXT,
        "",
        "Azure: encryption scope.",
        unapplied="files would have the encryption that the container is set to; set it there",
    )
    access_tier: str = key(
        TEXT,
        "",
        "Azure: access tier.",
        unapplied="files would have the tier that the account is set to; set it there",
    )
    storage_class: str = key(TEXT, "", "S3: storage class. An error with GCS.")
    predefined_acl: str = key(
        TEXT,
        "",
        "GCS: access control list.",
        unapplied="files would have the access that the bucket is set to; set it there",
    )
    acl: str = key(TEXT, "", "S3: access control list.")
    sse: str = key(TEXT, "", "S3: server-side encryption.")
    sse_kms_key_id: str = key(TEXT, "", "S3: key of server-side encryption.", secret=True)
    use_accelerate_endpoint: bool = key(
        BOOL, False, "S3: accelerated endpoint.", moot="the usual endpoint of the same bucket is used"
    )
    # What only tunes a running TiCDC
    spool_disk_quota: int | None = tuning(integer(1), "Storage: bytes of local disk for spooling.")
    kafka_version: str | None = tuning(TEXT, "Kafka: version of the brokers.")
    max_retry: int | None = tuning(INT, "Kafka: attempts of a producer.")
    required_acks: int | None = tuning(
        integer(-1, 1), "Kafka: acknowledgements a producer waits for; Tidemark waits for all."
    )
    sasl_gssapi_auth_type: str | None = tuning(TEXT, "Kafka: GSSAPI user or keytab.")
    sasl_gssapi_keytab_path: str | None = tuning(TEXT, "Kafka: GSSAPI keytab file.")
    sasl_gssapi_kerberos_config_path: str | None = tuning(TEXT, "Kafka: GSSAPI Kerberos configuration.")
    sasl_gssapi_service_name: str | None = tuning(TEXT, "Kafka: GSSAPI service.")
    sasl_gssapi_user: str | None = tuning(TEXT, "Kafka: GSSAPI user.")
    sasl_gssapi_password: str | None = tuning(TEXT, "Kafka: GSSAPI password.", secret=True)
    sasl_gssapi_realm: str | None = tuning(TEXT, "Kafka: GSSAPI realm.")
    sasl_gssapi_disable_pafxfast: bool | None = tuning(BOOL, "Kafka: GSSAPI without PA-FX-FAST.")
    max_multi_update_row: int | None = tuning(INT, "Database: rows of one merged update.")
    max_multi_update_row_size: int | None = tuning(
        INT, "Database: average row size up to which updates are merged."
    )
    tidb_txn_mode: str | None = tuning(TEXT, "Database: optimistic or pessimistic.")
    batch_dml_enable: bool | None = tuning(BOOL, "Database: merge statements into batches.")
    multi_stmt_enable: bool | None = tuning(BOOL, "Database: several statements in one call.")
    cache_prep_stmts: bool | None = tuning(BOOL, "Database: keep prepared statements.")
    has_vector_type: bool | None = tuning(BOOL, "Database: whether it knows vectors.")
    enable_ddl_ts: bool | None = tuning(BOOL, "Database: write the ts of DDL.")
    dml_max_retry: int | None = tuning(INT, "Database: attempts of a statement.")
    dry_run: bool = key(
        BOOL,
        False,
        "Database: write nothing.",
        unapplied="rows would be written; tidemark encode shows what a sink would send",
    )
    dry_run_delay: int | None = tuning(INT, "Database: delay of a dry run.")
    dry_run_block_interval: int | None = tuning(INT, "Database: pauses of a dry run.")


@dataclass(frozen=True)
class SinkUri:
    """A sink URI taken apart. Printing one never shows a secret."""

    scheme: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    # The first host; `hosts` has all, as host or host:port.
    host: str = ""
    port: int | None = None
    hosts: tuple[str, ...] = ()
    # Decoded, with its leading /.
    path: str = ""
    options: UriOptions = field(default_factory=UriOptions)
    # The URI without secrets.
    shown: str = ""

    @property
    def sink_kind(self) -> str:
        """storage, kafka, pulsar, mysql, blackhole, or none without a URI."""
        return KIND_OF_SCHEME.get(self.scheme, NO_SINK)

    @property
    def keeps_nothing(self) -> bool:
        """Whether the sink throws away what it gets, as the user asked for."""
        return self.scheme in ("blackhole", "noop")

    @property
    def place(self) -> str:
        """Where the sink is, without user, secrets and options: the same place whatever the options say."""
        return f"{self.scheme}://{','.join(self.hosts)}{self.path.rstrip('/')}" if self.scheme else ""

    @property
    def topic(self) -> str:
        """Kafka and Pulsar: the topic of the URI, which tables without a topic rule go to."""
        return self.path.strip("/") if self.sink_kind in ("kafka", "pulsar") else ""


_URI = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#.*)?",
    re.S,
)
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


def is_uri(text: str) -> bool:
    """Whether the text can be taken apart as a URI, whatever it names."""
    return _URI.fullmatch(text.strip()) is not None


def parse_uri(text: str, findings: Findings) -> tuple[SinkUri | None, dict[str, object]]:
    """The URI without its options, and the options that it gives by field name."""
    parts = _URI.fullmatch(text.strip())
    if parts is None:
        findings.error("sink-uri", "is not a URI", redact_unparsed(text), "scheme://host/path?option=value")
        return None, {}
    scheme = parts["scheme"].lower()
    if scheme not in KIND_OF_SCHEME:
        hint = nearest(scheme, KIND_OF_SCHEME)
        findings.error("sink-uri", f"has an unknown scheme{hint}", scheme, ", ".join(KIND_OF_SCHEME))
        return None, {}
    if _BAD_PERCENT.search(parts["authority"] + parts["path"]):
        findings.error(
            "sink-uri", "has a % that is not followed by two hex digits; write % itself as %25", text
        )
        return None, {}
    userinfo, _, hostinfo = parts["authority"].rpartition("@")
    user, _, password = userinfo.partition(":")
    hosts = tuple(host for host in hostinfo.split(",") if host)
    host, port = _host_and_port(hosts[0], findings) if hosts else ("", None)
    for other in hosts[1:]:
        _host_and_port(other, findings)
    uri = SinkUri(
        scheme=scheme,
        user=unquote(user),
        password=unquote(password),
        host=host,
        port=port,
        hosts=hosts,
        path=unquote(parts["path"]),
        shown=redact_uri(text.strip()),
    )
    return uri, _read_options(parts["query"] or "", findings)


def _host_and_port(text: str, findings: Findings) -> tuple[str, int | None]:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        return text, None
    if not re.fullmatch(r"[0-9]{0,5}", port) or int(port or 0) > 65535:
        # Whatever stands there may be half of a password with a / or # in it: it is not shown.
        findings.error(
            "sink-uri",
            "has a port that is not a number; percent-encode special characters of a password",
            HIDDEN,
            "0 to 65535",
        )
        return host, None
    return host, int(port) if port else None


def _read_options(query: str, findings: Findings) -> dict[str, object]:
    known = keys_of(UriOptions)
    values: dict[str, object] = {}
    for pair in filter(None, query.split("&")):
        raw_name, _, raw_value = pair.partition("=")
        # The object store options exist with _ and with -.
        name = unquote_plus(raw_name).replace("_", "-")
        path = f"sink-uri?{name}"
        # A slip of a secret's name has a secret for a value.
        is_secret = is_secret_name(name) or (name not in known and is_secret_name(nearest_name(name, known)))
        shown = HIDDEN if is_secret else unquote_plus(raw_value)
        if name not in known:
            findings.error(path, f"is not an option of a sink URI{nearest(name, known)}", shown)
            continue
        item, declared = known[name]
        if _BAD_PERCENT.search(raw_value):
            findings.error(
                path, "has a % that is not followed by two hex digits; write % itself as %25", shown
            )
            continue
        value = unquote_plus(raw_value)
        if item.name in values:
            findings.error(path, "is given twice", shown)
            continue
        if value == "":
            continue
        ok, read = read_value(declared, path, value, findings)
        if ok:
            values[item.name] = read
            if declared.tuning:
                findings.note(path, "only tunes a running TiCDC and is ignored")
            if read != item.default:
                note_effect(declared, path, findings)
    return values
