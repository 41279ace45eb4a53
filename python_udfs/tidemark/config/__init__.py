"""Changefeed file + sink URI -> validated settings. No Spark, no dbt."""

from tidemark.config.dispatch_rule import DispatchRule
from tidemark.config.findings import ConfigError, Finding
from tidemark.config.load import check, load
from tidemark.config.rules import check_default_topic, check_partition_count
from tidemark.config.secrets import redact, redact_uri
from tidemark.config.settings import Settings
from tidemark.config.topic_rule import topic_problem

__all__ = [
    "ConfigError",
    "DispatchRule",
    "Finding",
    "Settings",
    "check",
    "check_default_topic",
    "check_partition_count",
    "load",
    "redact",
    "redact_uri",
    "topic_problem",
]
