"""What TiCDC takes, but a sink of Tidemark would refuse when it begins. The sinks are asked themselves; nothing is contacted."""

from __future__ import annotations

from tidemark.config.findings import Findings
from tidemark.config.settings import Settings
from tidemark.config.uri import NOTHING_KEPT
from tidemark.encode.protocol import ENCODERS, encoder_for, protocols_of
from tidemark.errors import TidemarkError
from tidemark.registry.errors import RegistryError
from tidemark.registry.open import check_url
from tidemark.sinks.kafka.client import client_options
from tidemark.sinks.mysql.connection import Target
from tidemark.sinks.storage.layout import StorageLayout

# Kinds of sinks that send in a protocol.
_IN_PROTOCOLS = ("storage", "kafka", "pulsar")


def refusals(settings: Settings, findings: Findings) -> None:
    kind, uri = settings.sink_kind, settings.uri
    if uri.keeps_nothing:
        findings.note("sink-uri", NOTHING_KEPT, uri.shown)
    if kind in _IN_PROTOCOLS:
        _protocol(settings, findings)
    _glue(settings, findings)
    try:
        if uri.options.schema_registry:
            check_url(uri.options.schema_registry)
    except RegistryError as problem:
        findings.error("schema-registry", problem.reason.removeprefix("schema-registry").lstrip(": "))
    if findings.errors:
        # What sinks say of settings that are wrong would only repeat it.
        return
    try:
        if kind == "storage":
            StorageLayout(settings)
        elif kind == "kafka":
            client_options(settings)
        elif kind == "mysql":
            # Whoever checks need not have the password.
            Target.from_settings(settings, {uri.options.password_env: ""})
        if kind in _IN_PROTOCOLS:
            encoder_for(settings)
    except TidemarkError as problem:
        findings.error("sink-uri", str(problem).removeprefix(f"{uri.shown}: "), uri.shown)


def _protocol(settings: Settings, findings: Findings) -> None:
    kind, protocol = settings.sink_kind, settings.protocol
    known = protocols_of(kind)
    if not known:
        findings.error(
            "sink-uri", f"there is no {kind} sink, nothing would be sent", settings.uri.shown, _sinks()
        )
    elif protocol and protocol not in known:
        why = "cannot be sent to it" if protocol in ENCODERS else "has no encoder"
        findings.error("protocol", f"{why}: a {kind} sink would send nothing", protocol, ", ".join(known))


def _sinks() -> str:
    """The sinks that there are."""
    kinds = [f"{kind} ({', '.join(protocols_of(kind))})" for kind in _IN_PROTOCOLS if protocols_of(kind)]
    return ", ".join([*kinds, "TiDB, MySQL, blackhole"])


def _glue(settings: Settings, findings: Findings) -> None:
    glue = settings.sink.kafka.glue_schema_registry_config
    if settings.protocol == "avro" and settings.sink_kind == "kafka" and glue.registry_name:
        findings.error(
            "sink.kafka-config.glue-schema-registry-config",
            "there is no client for AWS Glue; name a Confluent registry with schema-registry=http://… in the sink URI",
        )
