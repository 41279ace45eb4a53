"""Rules that concern more than one key."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from tidemark.config.findings import ConfigError, Finding, Findings
from tidemark.config.settings import Settings


def adjust(settings: Settings, findings: Findings) -> Settings:
    return settings


def validate(settings: Settings, given: frozenset[str], findings: Findings) -> None:
    pass


def check_partition_count(configured: int | None, actual: int) -> int:
    return configured or actual


def check_default_topic(settings: Settings, tables: Iterable[tuple[str, str]]) -> None:
    pass
