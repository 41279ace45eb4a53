"""The one object that a changefeed file and a sink URI become."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidemark.compat import Compat
from tidemark.config.changefeed import Changefeed
from tidemark.config.sink import Sink
from tidemark.config.uri import SinkUri


@dataclass(frozen=True)
class Settings:
    """Everything that was configured, validated. Secrets are in it, but printing it never shows one.

    `changefeed` is the file's top level (case_sensitive, bdr_mode, filter_rules, consistent, …), `sink` its `[sink]` table with the dispatch
    rules as DispatchRule objects, `uri` the sink URI with its typed `options`. Where file and URI may both say something, both places hold
    the value in force.
    """

    changefeed: Changefeed = field(default_factory=Changefeed)
    uri: SinkUri = field(default_factory=SinkUri)
    compat: Compat = field(default_factory=lambda: Compat.named("design"))

    @property
    def sink(self) -> Sink:
        return self.changefeed.sink

    @property
    def sink_kind(self) -> str:
        """storage, kafka, pulsar, mysql, blackhole, or none without a sink URI."""
        return self.uri.sink_kind

    @property
    def protocol(self) -> str:
        """The protocol in force by its one name (avro also for flat-avro), or "" for sinks that have none."""
        return self.sink.protocol

    @property
    def accepts_missing_files(self) -> bool:
        """Whether data files of the storage tree may have been removed on purpose."""
        return self.uri.options.missing_files == "accept"

    @property
    def default_topic(self) -> str:
        return self.uri.topic
