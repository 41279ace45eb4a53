"""What TiCDC takes, but a sink of Tidemark would refuse when it begins. The sinks are asked themselves; nothing is contacted."""

from __future__ import annotations

from tidemark.config.findings import Findings
from tidemark.config.settings import Settings
from tidemark.encode.protocol import ENCODERS
from tidemark.errors import TidemarkError
from tidemark.sinks.mysql.connection import Target
from tidemark.sinks.storage.layout import StorageLayout


def refusals(settings: Settings, findings: Findings) -> None:
    protocol, kind, uri = settings.protocol, settings.sink_kind, settings.uri
    if protocol and protocol not in ENCODERS and kind in ("kafka", "pulsar", "storage"):
        # Dispatch reports need no encoder, and TiCDC takes it.
        findings.note(
            "protocol",
            f"Tidemark has no encoder for it, so nothing can be sent; it has {', '.join(ENCODERS)}",
            protocol,
        )
    try:
        if kind == "storage":
            StorageLayout(settings)
        elif kind == "mysql":
            # Whoever checks need not have the password.
            Target.from_settings(settings, {uri.options.password_env: ""})
    except TidemarkError as problem:
        findings.error("sink-uri", str(problem).removeprefix(f"{uri.shown}: "), uri.shown)
