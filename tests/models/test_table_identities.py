"""What a table is while clusters rename it one after the other: table_identities over random histories.

Clusters execute one script of statements, each with a lag of its own, as replicated DDL does. The script knows which tables are the same; the model sees only ids and names.
"""

import random
from dataclasses import dataclass, field

import pytest
from pyspark.sql import Row

NAMES = "abcdef"
CREATE, DROP, TRUNCATE, RENAME = 3, 4, 11, 14
# Between two statements of the script.
STEP = 10


@dataclass
class Cluster:
    """What table_versions has of a cluster; tables are known by their number in the script."""

    upstream: str
    schema: str
    ids: range
    checkpoint_ts: int
    versions: list = field(default_factory=list)
    open: dict = field(default_factory=dict)

    def begin(self, table: int, name: str, ts: int, ddl_type: int | None) -> None:
        table_id = next(
            number for number in self.ids if number not in {row["table_id"] for row in self.versions}
        )
        self.note(table, table_id, name, ts, ddl_type)

    def note(self, table: int, table_id: int, name: str, ts: int, ddl_type: int | None) -> None:
        version = {
            "upstream_id": self.upstream,
            "table_id": table_id,
            "schema_name": self.schema,
            "table_name": name,
            "valid_from_ts": ts,
            "valid_to_ts": None,
            "ddl_type": ddl_type,
        }
        self.versions.append(version)
        self.open[table] = version

    def end(self, table: int, ts: int) -> dict:
        version = self.open.pop(table)
        version["valid_to_ts"] = ts
        return version

    def execute(self, ts: int, statement: tuple) -> None:
        kind, change = statement
        if kind == CREATE:
            for table, name in change.items():
                self.begin(table, name, ts, CREATE)
        elif kind == RENAME:
            for table, version in {table: self.end(table, ts) for table in change}.items():
                self.note(table, version["table_id"], change[table], ts, RENAME)
        elif kind == TRUNCATE:
            for table in change:
                self.begin(table, self.end(table, ts)["table_name"], ts, TRUNCATE)
        else:
            for table in change:
                self.end(table, ts)


def write_script(dice: random.Random, length: int, *, with_drops: bool) -> list[tuple]:
    """(kind of statement, {table: the name it has then}). A table does not both get a former name back and be truncated."""
    script, tables, names, truncated = [], {}, {}, set()
    while len(script) < length:
        free = [name for name in NAMES if name not in tables.values()]
        chosen = dice.sample(list(tables), min(2, len(tables)))
        kind = dice.choice((CREATE, RENAME, RENAME, "swap", "replace", TRUNCATE, *([DROP] * with_drops)))
        if kind == CREATE and free and len(tables) < 4:
            change = {len(script): dice.choice(free)}
        elif kind == RENAME and free and chosen:
            change = {chosen[0]: dice.choice(free)}
        elif kind == "swap" and len(chosen) == 2:
            kind, change = RENAME, {chosen[0]: tables[chosen[1]], chosen[1]: tables[chosen[0]]}
        elif kind == "replace" and free and len(chosen) == 2:
            kind, change = RENAME, {chosen[0]: dice.choice(free), chosen[1]: tables[chosen[0]]}
        elif kind in (TRUNCATE, DROP) and chosen:
            change = {chosen[0]: tables[chosen[0]]}
        else:
            continue
        had = {
            table: [*names.get(table, ()), name] for table, name in change.items() if kind in (CREATE, RENAME)
        }
        is_back = {table for table, former in {**names, **had}.items() if len(set(former)) < len(former)}
        is_cut = truncated | (set(change) if kind == TRUNCATE else set())
        if is_back & is_cut:
            continue
        names.update(had)
        truncated = is_cut
        tables.update(change)
        if kind == DROP:
            del tables[chosen[0]]
        script.append((kind, change))
    return script


def lived(
    dice: random.Random, schema: str, script: list, *, is_over: bool, begin_late: bool
) -> list[Cluster]:
    """Three clusters somewhere in the script, or at its end. With `begin_late` the logs of some begin after its first statements.

    While logs begin, clusters are at the same statement: what one has done before its log begins, and another one after it, cannot be known.
    """
    together = dice.randrange(len(script)) if begin_late else 0
    end = STEP * (len(script) + 6 if is_over else dice.randint(together + 1, len(script)))
    clusters = []
    for place in range(3):
        cluster = Cluster(f"{schema}-{place}", schema, range(100 * place + 1, 100 * place + 100), end)
        lag = dice.choice((0, dice.randrange(1, 6 * STEP)))
        first = dice.randint(0, together)
        for number, statement in enumerate(script):
            ts = STEP * (number + 1) + (lag if number >= together else place)
            if number == first:
                # What was there before is seen as it is when the log begins.
                cluster.versions = list(cluster.open.values())
                for version in cluster.versions:
                    version.update(valid_from_ts=STEP * number + 5, ddl_type=None)
            if ts <= end:
                cluster.execute(ts, statement)
        clusters.append(cluster)
    return clusters


VERSIONS = (
    "upstream_id string, table_id bigint, schema_name string, table_name string, "
    "valid_from_ts bigint, valid_to_ts bigint, ddl_type int"
)
STATEMENTS = (
    "upstream_id string, ddl_type int, finished_ts bigint, dropped_table_ids array<bigint>, body string, "
    "error_reason string, tables array<struct<table_id: bigint, is_partition: boolean>>"
)
CHECKPOINTS = "upstream_id string, checkpoint_ts bigint, batch_id bigint"


def worlds_of(kind: str, *, with_drops: bool, begin_late: bool, is_over: bool = False) -> list[list[Cluster]]:
    dice = random.Random(kind)
    return [
        lived(
            dice,
            f"{kind}_{number}",
            write_script(dice, dice.randint(2, 10), with_drops=with_drops),
            is_over=is_over,
            begin_late=begin_late,
        )
        for number in range(200)
    ]


WORLDS = {
    "renames": worlds_of("renames", with_drops=False, begin_late=False),
    "drops": worlds_of("drops", with_drops=True, begin_late=False),
    "late": worlds_of("late", with_drops=True, begin_late=True),
    "over": worlds_of("over", with_drops=True, begin_late=True, is_over=True),
}


@pytest.fixture(scope="module")
def shown(models):
    """Of every cluster: {table of the script: the name that the model gives it}."""
    clusters = [cluster for worlds in WORLDS.values() for world in worlds for cluster in world]
    versions = [Row(**version) for cluster in clusters for version in cluster.versions]
    checkpoints = [(cluster.upstream, cluster.checkpoint_ts, 0) for cluster in clusters]
    models.spark.sql(f"create schema if not exists {models.schema}")
    for name, rows, schema in (
        ("table_versions", versions, VERSIONS),
        ("stg_ddl_events", [], STATEMENTS),
        ("int_checkpoints", checkpoints, CHECKPOINTS),
    ):
        table = models.spark.createDataFrame(rows, schema)
        table.write.mode("overwrite").saveAsTable(f"{models.schema}.{name}")
    models.ok("run", "--select", "table_identities")
    found = {
        (row["upstream_id"], row["table_id"]): row["table_name"] for row in models.table("table_identities")
    }
    return {
        cluster.upstream: {
            table: found[cluster.upstream, version["table_id"]] for table, version in cluster.open.items()
        }
        for cluster in clusters
    }


def test_a_table_is_one_table_however_far_each_cluster_has_renamed_it(shown):
    renamed = 0
    for world in WORLDS["renames"]:
        names, own = {}, set()
        for cluster in world:
            own |= {(table, version["table_name"]) for table, version in cluster.open.items()}
            for table, name in shown[cluster.upstream].items():
                assert names.setdefault(table, name) == name, "one table is taken for two"
        assert len(set(names.values())) == len(names), "two tables are taken for one"
        assert set(names.items()) <= own, "no cluster has given this name to the table"
        renamed += len(own) - len(names)
    assert renamed > 50, "too few tables have several names at a time"


@pytest.mark.parametrize("kind", ["drops", "late"])
def test_tables_that_a_cluster_has_side_by_side_are_never_one(shown, kind):
    for world in WORLDS[kind]:
        for cluster in world:
            names = shown[cluster.upstream]
            assert len(set(names.values())) == len(names)


def test_clusters_that_have_come_to_the_same_names_are_shown_under_them(shown):
    for world in WORLDS["over"]:
        for cluster in world:
            own = {table: version["table_name"] for table, version in cluster.open.items()}
            assert shown[cluster.upstream] == own
