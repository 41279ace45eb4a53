"""The seed of event types says what the event registry knows."""

import csv
from pathlib import Path

from tidemark.wire.registry import EVENT_TYPES, VERSIONS

SEED = Path(__file__).parent.parent / "seeds" / "event_types.csv"


def test_the_seed_equals_the_registry():
    with SEED.open(newline="") as file:
        seeded = list(csv.DictReader(file))
    assert seeded == [
        {
            "event_type": str(kind.id),
            "event_name": kind.name,
            "type_name": kind.type_name,
            "family": kind.family,
            "known_versions": ",".join(
                str(version) for event_type, version in sorted(VERSIONS) if event_type == kind.id
            ),
        }
        for kind in EVENT_TYPES.values()
    ]
