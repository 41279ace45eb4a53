# ruff: noqa: RUF009 - key() and section() make dataclass fields
"""The `[sink]` table of the changefeed file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from tidemark.config.dispatch_rule import DispatchRule
from tidemark.config.keys import (
    BOOL,
    DURATION,
    INT,
    PARTITION_EXPRESSION,
    TEXT,
    TEXT_MAP,
    TEXTS,
    integer,
    key,
    one_of,
    section,
    tables,
    tuning,
)

# Spelling in a file or URI -> the protocol's one name.
PROTOCOL_ALIASES = {"flat-avro": "avro", "default": "open-protocol"}
PROTOCOL = one_of(
    "avro",
    "canal",
    "canal-json",
    "craft",
    "csv",
    "debezium",
    "maxwell",
    "open-protocol",
    "outbox-json",
    "simple",
    fold=True,
    aliases=PROTOCOL_ALIASES,
    empty="",
)
DECIMAL_MODE = one_of("precise", "string", empty="precise")
BIGINT_UNSIGNED_MODE = one_of("long", "string", empty="long")
AVRO_FILE_FORMAT = one_of("container", "messages")
MISSING_FILES = one_of("fail", "accept")
ENCODING_FORMAT = one_of("json", "avro", empty="json")
ATOMICITY = one_of("none", "table", empty="none")
COMPRESSION = one_of("none", "gzip", "snappy", "lz4", "zstd", fold=True, empty="none")
_SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER")
SASL_MECHANISM = one_of(
    *_SASL_MECHANISMS, fold=True, aliases={name.lower(): name for name in _SASL_MECHANISMS}, empty=""
)

DEFAULT_FILE_INDEX_DIGIT = 20

ALWAYS_SAFE = "rows with a key are always written with REPLACE, or by last write wins"
NO_BEFORE = (
    "Avro messages have no field _ticdc_before; leave the option out, or use canal-json for old values"
)
NO_FLUSH = "a run writes what there is up to its checkpoint, and files end by their size"
AS_LOGGED = "updates are sent as they stand in the log"


@dataclass(frozen=True)
class DispatcherEntry:
    """One entry of `dispatchers` as written; the settings hold the DispatchRule made of it."""

    matcher: tuple[str, ...] = key(TEXTS, (), "Table filter rules: the tables that this rule is for.")
    dispatcher: str = key(
        PARTITION_EXPRESSION, "", "Older name of `partition`; only one of the two may be given."
    )
    partition: str = key(
        PARTITION_EXPRESSION,
        "",
        "Partition expression: default, table, rowid, pk, ts, index-value, index, columns, [column, …] or a partition number.",
    )
    index_name: str = key(
        TEXT,
        "",
        "With partition index-value or index: the unique index whose columns are hashed.",
        name="index",
    )
    columns: tuple[str, ...] = key(TEXTS, (), "With partition columns: the columns that are hashed.")
    topic: str = key(
        TEXT, "", "Topic expression: literal text, {schema}, {table}. Empty: the topic of the sink URI."
    )
    target_schema: str = key(
        TEXT,
        "",
        "Schema name to write to: literal text, {schema}, {table}. Empty: as in the source.",
    )
    target_table: str = key(
        TEXT,
        "",
        "Table name to write to: literal text, {schema}, {table}. Empty: as in the source.",
    )


@dataclass(frozen=True)
class ColumnSelector:
    matcher: tuple[str, ...] = key(TEXTS, (), "Table filter rules: the tables that this selector is for.")
    columns: tuple[str, ...] = key(TEXTS, (), "Column filter rules: the columns that are sent.")


@dataclass(frozen=True)
class Csv:
    delimiter: str = key(
        TEXT, ",", "Between two fields: 1 to 3 bytes, no line break, no character of the quote."
    )
    quote: str = key(
        TEXT,
        '"',
        "Around text fields: one byte, no line break. Empty: no quoting, special characters are escaped.",
    )
    null: str = key(TEXT, "\\N", "What stands for NULL.")
    include_commit_ts: bool = key(BOOL, False, "Write the commit ts into each line.")
    binary_encoding_method: str = key(one_of("base64", "hex"), "base64", "How binary values are written.")
    output_old_value: bool = key(BOOL, False, "Write an update as a delete line and an insert line.")
    output_handle_key: bool = key(BOOL, False, "Accepted for TiCDC's sake; it has no effect there either.")
    output_field_header: bool = key(BOOL, False, "Start each file with a line of field names.")


@dataclass(frozen=True)
class CloudStorage:
    output_column_id: bool = key(BOOL, False, "Write column ids into schema files.")
    use_table_id_as_path: bool = key(BOOL, False, "Table ids instead of schema and table names as folders.")
    file_size: int | None = key(INT, None, "A data file is closed at this many bytes; the URI option wins.")
    flush_interval: timedelta | None = key(
        DURATION, None, "A data file is closed after this long; the URI option wins.", moot=NO_FLUSH
    )
    output_raw_change_event: bool = key(
        BOOL,
        False,
        "Send an update of a key as it is instead of as delete and insert.",
        moot=AS_LOGGED,
    )
    worker_count: int | None = tuning(INT, "Writer threads of TiCDC.")
    flush_concurrency: int | None = tuning(INT, "Parallel uploads of one file.")
    file_expiration_days: int = key(
        INT,
        0,
        "After how many days TiCDC removes date folders.",
        unapplied="nothing is removed from a tree; let the object store expire files instead",
    )
    file_cleanup_cron_spec: str | None = tuning(TEXT, "When TiCDC looks for date folders to remove.")
    spool_disk_quota: int | None = tuning(INT, "Bytes of local disk for spooling.")
    spool_base_dir: str | None = tuning(TEXT, "Local folder for spooling.")


@dataclass(frozen=True)
class KafkaCodec:
    enable_tidb_extension: bool | None = key(
        BOOL, None, "Append TiDB's own fields to messages; the URI option wins."
    )
    max_batch_size: int | None = key(
        integer(1), None, "Rows in one open protocol message; the URI option wins."
    )
    avro_enable_watermark: bool | None = key(
        BOOL, None, "Send DDL and checkpoints as Avro too; the URI option wins."
    )
    avro_decimal_handling_mode: str | None = key(
        DECIMAL_MODE, None, "How Avro holds DECIMAL; the URI option wins."
    )
    avro_bigint_unsigned_handling_mode: str | None = key(
        BIGINT_UNSIGNED_MODE, None, "How Avro holds BIGINT UNSIGNED; the URI option wins."
    )
    avro_include_before_value: bool = key(
        BOOL,
        False,
        "Send the old row in Avro's field _ticdc_before; the URI option wins.",
        unapplied=NO_BEFORE,
    )
    encoding_format: str | None = key(
        ENCODING_FORMAT, None, "Form of the simple protocol; the URI option wins."
    )
    output_row_key: bool | None = key(
        BOOL, None, "Put the row key into canal-json's extension; the URI option wins."
    )


@dataclass(frozen=True)
class LargeMessage:
    large_message_handle_option: str = key(
        one_of("none", "claim-check", "handle-key-only", empty="none"),
        "none",
        "What happens to a message that is too large.",
    )
    large_message_handle_compression: str = key(
        one_of("none", "lz4", "snappy", empty="none"), "none", "Compression of message values."
    )
    claim_check_storage_uri: str = key(
        TEXT, "", "Where large messages are kept with claim-check.", secret=True
    )
    claim_check_raw_value: bool = key(BOOL, False, "Keep only the value with claim-check.")


@dataclass(frozen=True)
class GlueSchemaRegistry:
    registry_name: str = key(TEXT, "", "Name of the AWS Glue schema registry.")
    region: str = key(TEXT, "", "AWS region of the registry.")
    access_key: str = key(TEXT, "", "AWS access key.", secret=True)
    secret_access_key: str = key(TEXT, "", "AWS secret access key.", secret=True)
    token: str = key(TEXT, "", "AWS session token.", secret=True)


@dataclass(frozen=True)
class Kafka:
    partition_num: int | None = key(
        integer(1), None, "Partitions that rows are spread over; the URI option wins."
    )
    max_message_bytes: int | None = key(integer(1), None, "Largest message in bytes; the URI option wins.")
    codec_config: KafkaCodec = section(KafkaCodec, "Options of message encoders.")
    large_message_handle: LargeMessage = section(LargeMessage, "Messages above max-message-bytes.")
    glue_schema_registry_config: GlueSchemaRegistry = section(
        GlueSchemaRegistry, "AWS Glue instead of a Confluent registry."
    )
    output_raw_change_event: bool = key(
        BOOL,
        False,
        "Send an update of a key as it is instead of as delete and insert.",
        moot=AS_LOGGED,
    )
    replication_factor: int | None = key(
        integer(1), None, "Replicas of a topic that is created; the URI option wins."
    )
    kafka_version: str | None = tuning(TEXT, "Version of the brokers.")
    compression: str | None = key(COMPRESSION, None, "Compression of producer batches; the URI option wins.")
    kafka_client_id: str | None = key(TEXT, None, "Name shown to the brokers; the URI option wins.")
    auto_create_topic: bool | None = key(BOOL, None, "Create topics that do not exist; the URI option wins.")
    dial_timeout: timedelta | None = key(
        DURATION, None, "How long an answer of the brokers is waited for; the URI option wins."
    )
    write_timeout: timedelta | None = tuning(DURATION, "Timeout to write.")
    read_timeout: timedelta | None = tuning(DURATION, "Timeout to read.")
    required_acks: int | None = tuning(
        integer(-1, 1), "Acknowledgements a producer waits for; Tidemark waits for all."
    )
    sasl_user: str | None = key(TEXT, None, "SASL user; the URI option wins.")
    sasl_password: str | None = key(TEXT, None, "SASL password; the URI option wins.", secret=True)
    sasl_mechanism: str | None = key(SASL_MECHANISM, None, "SASL mechanism; the URI option wins.")
    sasl_gssapi_auth_type: str | None = tuning(TEXT, "GSSAPI: user or keytab.")
    sasl_gssapi_keytab_path: str | None = tuning(TEXT, "GSSAPI: keytab file.")
    sasl_gssapi_kerberos_config_path: str | None = tuning(TEXT, "GSSAPI: Kerberos configuration.")
    sasl_gssapi_service_name: str | None = tuning(TEXT, "GSSAPI: service.")
    sasl_gssapi_user: str | None = tuning(TEXT, "GSSAPI: user.")
    sasl_gssapi_password: str | None = tuning(TEXT, "GSSAPI: password.", secret=True)
    sasl_gssapi_realm: str | None = tuning(TEXT, "GSSAPI: realm.")
    sasl_gssapi_disable_pafxfast: bool | None = tuning(BOOL, "GSSAPI: disable PA-FX-FAST.")
    sasl_oauth_client_id: str | None = tuning(TEXT, "OAuth: client id.")
    sasl_oauth_client_secret: str | None = tuning(TEXT, "OAuth: client secret.", secret=True)
    sasl_oauth_token_url: str | None = tuning(TEXT, "OAuth: token endpoint.", secret=True)
    sasl_oauth_scopes: tuple[str, ...] | None = tuning(TEXTS, "OAuth: scopes.")
    sasl_oauth_grant_type: str | None = tuning(TEXT, "OAuth: grant type.")
    sasl_oauth_audience: str | None = tuning(TEXT, "OAuth: audience.")
    enable_tls: bool | None = key(BOOL, None, "Use TLS; the URI option wins.")
    ca: str | None = key(TEXT, None, "TLS: file of the certificate authority; the URI option wins.")
    cert: str | None = key(TEXT, None, "TLS: certificate file; the URI option wins.")
    tls_key: str | None = key(TEXT, None, "TLS: key file; the URI option wins.", name="key", secret=True)
    insecure_skip_verify: bool | None = key(
        BOOL, None, "TLS: do not verify the certificate of the brokers; the URI option wins."
    )


@dataclass(frozen=True)
class PulsarOAuth2:
    oauth2_issuer_url: str | None = tuning(TEXT, "Authorization server.")
    oauth2_audience: str | None = tuning(TEXT, "Resource server.")
    oauth2_private_key: str | None = tuning(TEXT, "Private key file.", secret=True)
    oauth2_client_id: str | None = tuning(TEXT, "Client id.")
    oauth2_scope: str | None = tuning(TEXT, "Scope.")


@dataclass(frozen=True)
class Pulsar:
    output_raw_change_event: bool = key(
        BOOL,
        False,
        "Send an update of a key as it is instead of as delete and insert.",
        moot=AS_LOGGED,
    )
    max_message_bytes: int | None = key(integer(1), None, "Largest message in bytes; the URI option wins.")
    tls_key_file_path: str | None = tuning(TEXT, "TLS: key file.", secret=True)
    tls_certificate_file: str | None = tuning(TEXT, "TLS: certificate file.")
    tls_trust_certs_file_path: str | None = tuning(TEXT, "TLS: trusted certificates.")
    pulsar_producer_cache_size: int | None = tuning(INT, "Producers kept open.")
    pulsar_version: str | None = tuning(TEXT, "Version of the brokers.")
    compression_type: str | None = tuning(TEXT, "Compression of messages.")
    authentication_token: str | None = tuning(TEXT, "Token.", secret=True)
    connection_timeout: int | None = tuning(INT, "Seconds to connect.")
    operation_timeout: int | None = tuning(INT, "Seconds of an operation.")
    batching_max_messages: int | None = tuning(INT, "Messages of a producer batch.")
    batching_max_publish_delay: int | None = tuning(INT, "Milliseconds a producer batch waits.")
    send_timeout: int | None = tuning(INT, "Seconds until a send fails.")
    token_from_file: str | None = tuning(TEXT, "File of the token.", secret=True)
    basic_user_name: str | None = tuning(TEXT, "Basic authentication: user.")
    basic_password: str | None = tuning(TEXT, "Basic authentication: password.", secret=True)
    auth_tls_certificate_path: str | None = tuning(TEXT, "TLS authentication: certificate file.")
    auth_tls_private_key_path: str | None = tuning(TEXT, "TLS authentication: key file.", secret=True)
    oauth2: PulsarOAuth2 = section(PulsarOAuth2, "OAuth 2.", tuning=True)


@dataclass(frozen=True)
class MySql:
    time_zone: str = key(TEXT, "", "Time zone of the downstream session; the URI option wins.")
    max_txn_row: int | None = key(
        integer(1), None, "Rows of one downstream transaction; the URI option wins."
    )
    worker_count: int | None = key(integer(1), None, "Connections; the URI option wins.")
    max_multi_update_row_size: int | None = tuning(INT, "Average row size up to which updates are merged.")
    max_multi_update_row: int | None = tuning(INT, "Rows of one merged update.")
    tidb_txn_mode: str | None = tuning(TEXT, "optimistic or pessimistic.")
    ssl_ca: str | None = key(TEXT, None, "TLS: certificate authority.")
    ssl_cert: str | None = key(TEXT, None, "TLS: certificate.")
    ssl_key: str | None = key(TEXT, None, "TLS: key.", secret=True)
    write_timeout: timedelta | None = key(DURATION, None, "Timeout to write.")
    read_timeout: timedelta | None = key(DURATION, None, "Timeout to read.")
    timeout: timedelta | None = key(DURATION, None, "Timeout to connect.")
    enable_batch_dml: bool | None = tuning(BOOL, "Merge statements into batches.")
    enable_multi_statement: bool | None = tuning(BOOL, "Several statements in one call.")
    enable_cache_prepared_statement: bool | None = tuning(BOOL, "Keep prepared statements.")


@dataclass(frozen=True)
class Iceberg:
    warehouse: str | None = tuning(TEXT, "Base location of Iceberg tables.", secret=True)
    namespace: str | None = tuning(TEXT, "Root namespace.")
    catalog: str | None = tuning(TEXT, "hadoop, glue or rest.")
    catalog_uri: str | None = tuning(TEXT, "Endpoint of the catalog.", secret=True)
    region: str | None = tuning(TEXT, "AWS region.")
    database: str | None = tuning(TEXT, "Glue database.")
    mode: str | None = tuning(TEXT, "append or upsert.")
    commit_interval: str | None = tuning(TEXT, "Time between two commits.")
    target_file_size: int | None = tuning(INT, "Size of a data file.")
    auto_tune_file_size: bool | None = tuning(BOOL, "Adjust the file size.")
    partitioning: str | None = tuning(TEXT, "Partition spec.")
    schema_mode: str | None = tuning(TEXT, "strict or evolve.")
    max_buffered_rows: int | None = tuning(INT, "Buffered rows.")
    max_buffered_bytes: int | None = tuning(INT, "Buffered bytes.")
    max_buffered_rows_per_table: int | None = tuning(INT, "Buffered rows of a table.")
    max_buffered_bytes_per_table: int | None = tuning(INT, "Buffered bytes of a table.")
    emit_metadata_columns: bool | None = tuning(BOOL, "Write metadata columns.")
    enable_checkpoint_table: bool | None = tuning(BOOL, "Write a checkpoint table.")
    enable_global_checkpoint_table: bool | None = tuning(BOOL, "Write a global checkpoint table.")
    allow_takeover: bool | None = tuning(BOOL, "Take over tables of another changefeed.")
    broker: str | None = tuning(TEXT, "Kafka brokers of a second output.")
    kafka_config: Kafka = section(Kafka, "Kafka options of a second output.", tuning=True)


@dataclass(frozen=True)
class Outbox:
    id_column: str | None = tuning(TEXT, "Column of the message id.")
    key_column: str | None = tuning(TEXT, "Column of the message key.")
    value_column: str | None = tuning(TEXT, "Column of the message value.")
    header_columns: tuple[tuple[str, str], ...] | None = tuning(TEXT_MAP, "Header name -> column.")


@dataclass(frozen=True)
class OpenProtocol:
    output_old_value: bool = key(BOOL, True, "Send the old values of updates.")


@dataclass(frozen=True)
class Debezium:
    output_old_value: bool = key(BOOL, True, "Send the old values of updates.")


@dataclass(frozen=True)
class SinkIntegrity:
    integrity_check_level: str | None = tuning(TEXT, "Set by TiCDC itself from [integrity].")
    corruption_handle_level: str | None = tuning(TEXT, "Set by TiCDC itself from [integrity].")


@dataclass(frozen=True)
class Sink:
    """Everything under `[sink]`. `protocol`, `transaction_atomicity` and what else the URI may say too hold what is in force."""

    protocol: str = key(
        PROTOCOL,
        "",
        "Form of messages or files; the URI option wins. flat-avro is avro, default is open-protocol.",
    )
    dispatchers: tuple[DispatchRule, ...] = tables(
        DispatcherEntry, "Dispatch rules; the first that matches a table decides."
    )
    column_selectors: tuple[ColumnSelector, ...] = tables(
        ColumnSelector,
        "Which columns of which tables are sent in messages and files; TiDB and MySQL get all columns. The first that matches a table decides. Columns of the handle key, and those that a dispatch rule hashes, cannot be left out.",
    )
    schema_registry: str = key(
        TEXT, "", "Avro: endpoint of the schema registry; the URI option wins.", secret=True
    )
    terminator: str = key(
        TEXT, "\r\n", "CSV and canal-json files: end of a line. Empty: carriage return and line feed."
    )
    date_separator: str = key(
        one_of("none", "year", "month", "day", fold=True, empty="none"),
        "day",
        "Storage: date folder of data files.",
    )
    enable_partition_separator: bool = key(BOOL, True, "Storage: a folder per table partition.")
    file_index_digit: int = key(
        INT,
        DEFAULT_FILE_INDEX_DIGIT,
        "Storage: digits in a data file's name, 6 to 20; anything else means 20.",
        name="file-index-digit",
    )
    transaction_atomicity: str = key(
        ATOMICITY, "none", "none splits large transactions, table keeps those of one table whole."
    )
    only_output_updated_columns: bool = key(
        BOOL, False, "Old values of updates hold changed columns only; the URI option wins."
    )
    delete_only_output_handle_key_columns: bool = key(
        BOOL, False, "Deletes hold the handle key only. Not for CSV."
    )
    content_compatible: bool = key(
        BOOL, False, "canal-json: messages as the official Canal makes them; the URI option wins."
    )
    debezium_disable_schema: bool = key(BOOL, False, "Debezium: leave out the schema; the URI option wins.")
    safe_mode: bool = key(
        BOOL,
        False,
        "Database: write REPLACE instead of INSERT and UPDATE; the URI option wins.",
        moot=ALWAYS_SAFE,
    )
    csv: Csv = section(Csv, "CSV form.")
    cloud_storage: CloudStorage = section(CloudStorage, "Storage sinks.", name="cloud-storage-config")
    kafka: Kafka = section(Kafka, "Kafka sinks.", name="kafka-config")
    mysql: MySql = section(MySql, "Database sinks.", name="mysql-config")
    pulsar: Pulsar = section(Pulsar, "Pulsar sinks.", name="pulsar-config")
    open_protocol: OpenProtocol = section(OpenProtocol, "Open protocol.", name="open")
    debezium: Debezium = section(Debezium, "Debezium form.")
    iceberg: Iceberg = section(Iceberg, "Iceberg sink of TiCDC.", name="iceberg-config", tuning=True)
    outbox: Outbox = section(Outbox, "Outbox protocol of TiCDC.", tuning=True)
    encoder_concurrency: int | None = tuning(integer(0), "Encoder threads of TiCDC.")
    enable_kafka_sink_v2: bool | None = tuning(BOOL, "Another Kafka client of TiCDC.")
    advance_timeout_in_sec: int | None = tuning(
        integer(0), "After how long TiCDC restarts a table that stands still."
    )
    send_bootstrap_interval_in_sec: int | None = tuning(
        INT, "Simple protocol: seconds between bootstrap messages."
    )
    send_bootstrap_in_msg_count: int | None = tuning(INT, "Simple protocol: rows between bootstrap messages.")
    send_bootstrap_to_all_partition: bool | None = tuning(
        BOOL, "Simple protocol: bootstrap messages to all partitions."
    )
    send_all_bootstrap_at_start: bool | None = tuning(
        BOOL, "Simple protocol: bootstrap messages at the start."
    )
    case_sensitive: bool | None = tuning(BOOL, "Set by TiCDC itself from case-sensitive.")
    force_replicate: bool | None = tuning(BOOL, "Set by TiCDC itself from force-replicate.")
    integrity: SinkIntegrity = section(SinkIntegrity, "Set by TiCDC itself from [integrity].", tuning=True)
