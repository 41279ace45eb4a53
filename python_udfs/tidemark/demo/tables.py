"""The tables of the shop, and what their rows hold.

`orders` is a plain table; `customers` is a soft-delete table; `inventory` is an active-active table, which every cluster has with the same keys. The
latter two carry the three columns of active-active replication. A value comes from the row's key (it never changes) or from its last write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.demo import values as v
from tidemark.demo.clock import LOGICAL_BITS, START_MS
from tidemark.demo.column_types import column
from tidemark.demo.dice import below, key_of, mix
from tidemark.wire.table_info import Index, TableInfo

SCHEMA = "shop"
YEAR_US = 365 * v.DAY_US
START_US = START_MS * 1000


@dataclass
class Images:
    """Rows as they are at some moment, one entry each. 0 stands for NULL in `origin_ts` and `deleted_at`."""

    key: np.ndarray
    write: np.ndarray  # the number drawn by the write that made the row what it is
    origin_ts: np.ndarray  # where replication wrote the row: commit ts in the cluster it came from
    commit_ts: np.ndarray
    deleted_at: np.ndarray  # soft delete, in microseconds
    salt: int = 0

    def lasting(self, name: str) -> np.ndarray:
        """Random numbers that stay with the key."""
        return mix(self.key ^ np.uint64(key_of(self.salt, name, "key")))

    def latest(self, name: str) -> np.ndarray:
        """Random numbers that every write changes."""
        return mix(self.write ^ np.uint64(key_of(name)))


Values = Callable[[Images], pa.Array]


@dataclass(frozen=True)
class Definition:
    """A table of the demo: per column its SQL and its values; the first column is the primary key."""

    columns: tuple[tuple[str, Values], ...]
    indexed: tuple[str, ...] = ()
    is_soft_delete: bool = False
    is_active_active: bool = False
    added: tuple[str, Values] | None = None  # the column that ALTER TABLE adds half way


class Table:
    """One table of one cluster. `added_at` is the ts of the ALTER TABLE, 0 before it."""

    def __init__(self, definition: Definition, name: str, table_id: int, created_ts: int):
        self.definition = definition
        self.name = name
        self.table_id = table_id
        self.created_ts = created_ts
        self.added_at = 0

    def add_column(self, ts: int) -> None:
        self.added_at = ts
        del self.info

    @cached_property
    def info(self) -> TableInfo:
        definition = self.definition
        columns = [
            column(sql, position, indexed=sql.split()[0] in definition.indexed)
            for position, (sql, _) in enumerate(definition.columns)
        ]
        if self.added_at:
            columns.append(column(definition.added[0], len(columns), added=True))
        return TableInfo.build(
            SCHEMA,
            self.name,
            self.table_id,
            # TiDB stamps the table some time before the statement is finished.
            (self.added_at or self.created_ts) - (1 << LOGICAL_BITS),
            columns=columns,
            indexes=[
                Index(f"by_{name}", (name,), id=place) for place, name in enumerate(definition.indexed, 1)
            ],
            is_active_active=definition.is_active_active,
            is_soft_delete=definition.is_soft_delete,
        )

    def create_statement(self) -> str:
        columns = ", ".join(sql for sql, _ in self.definition.columns)
        keys = "".join(f", key by_{name} ({name})" for name in self.definition.indexed)
        return f"create table {self.name} ({columns}{keys})"

    def alter_statement(self) -> str:
        return f"alter table {self.name} add column {self.definition.added[0]}"

    def rows(self, images: Images) -> pa.RecordBatch:
        arrays = [values(images) for _, values in self.definition.columns]
        if self.added_at:
            arrays.append(self._added(images))
        return pa.RecordBatch.from_arrays(arrays, schema=self.info.arrow_schema)

    def _added(self, images: Images) -> pa.Array:
        """A row that was last written before the column existed has its default."""
        values = self.definition.added[1](images)
        before = images.commit_ts < np.uint64(self.added_at)
        default = pa.scalar(ADDED_DEFAULT, type=values.type)
        return pc.if_else(pa.array(before), default, values)


def _words(text: str) -> pa.Array:
    return pa.array(text.split("|"))


FIRST_NAMES = _words("Ana|Bo|Chen|Dina|Émile|Farid|Grace|Hana|Ivan|Jürgen|Kofi|Lucía|Mei|Noah|Olga|Priya")
FAMILY_NAMES = _words(
    "Ruiz|Lindström|陈|Okafor|Müller|O'Neil|García|Sato|Петров|Haddad|Nguyen|Smith|Rossi|Kaya|Silva|Novák"
)
MAIL_NAMES = _words("ana|bo|chen|dina|emile|farid|grace|hana|ivan|jurgen|kofi|lucia|mei|noah|olga|priya")
COUNTRIES = _words("DE|FR|US|JP|BR|IN|NG|SE|CN|MX|ES|IT")
STATUSES = _words("new|paid|packed|shipped|delivered|returned")
CURRENCIES = _words("EUR|USD|JPY|GBP|SEK|CNY")
NOTES = _words(
    'leave at the door|call before delivery|gift, no invoice please|second attempt|左侧门铃|"fragile", handle with care|'
    "ring twice|neighbour's flat is fine|price agreed: 5 % off|pay on pick-up|see order before; same address|back entrance\\yard"
)
PRODUCTS = _words("lamp|desk|chair|shelf|teapot|rug|clock|mirror|basket|vase|blanket|stool")
COLOURS = _words("red|green|blue|black|white|oak|crème|grey")
PREFERENCES = _words(
    '{"lang": "de", "mail": true}|{"lang": "en", "mail": false, "sizes": [38, 40]}|{"lang": "zh", "theme": {"dark": true}}|'
    '{"mail": true, "score": 4.5}|[]|{"lang": "fr", "mail": null}'
)


def _deleted_at(images: Images) -> pa.Array:
    return v.null_where(v.moment(images.deleted_at, "us"), images.deleted_at == 0)


# The columns of active-active replication.
REPLICATION = (
    ("_tidb_origin_ts bigint unsigned null", lambda i: v.null_where(pa.array(i.origin_ts), i.origin_ts == 0)),
    ("_tidb_softdelete_time timestamp(6) null", _deleted_at),
    ("_tidb_commit_ts bigint unsigned null", lambda i: pa.array(i.commit_ts)),
)


def _note(images: Images) -> pa.Array:
    random = images.latest("note")
    texts = v.joined(v.chosen(random, NOTES), " #", v.text_of(below(random << np.uint64(8), 1000)))
    return v.null_where(texts, v.rarely(random, 3))


def _weight(images: Images) -> pa.Array:
    random = images.lasting("weight_kg")
    return v.null_where(pa.array(v.real(random, 40)), v.rarely(random, 10))


ADDED_DEFAULT = 3
ORDERS = Definition(
    columns=(
        ("order_id bigint unsigned primary key", lambda i: pa.array(i.key)),
        ("customer_id bigint unsigned not null", lambda i: v.natural(i.lasting("customer_id"), 1, 50_000)),
        ("status varchar(16) not null default 'new'", lambda i: v.chosen(i.latest("status"), STATUSES)),
        ("total decimal(15,2)", lambda i: v.decimal(i.latest("total"), 199, 250_000, 15, 2)),
        ("currency char(3) not null default 'EUR'", lambda i: v.chosen(i.lasting("currency"), CURRENCIES)),
        ("note varchar(200)", _note),
        ("paid tinyint(1) not null default '0'", lambda i: v.whole(i.latest("paid"), 0, 1)),
        ("placed_at datetime(6)", lambda i: v.moment(START_US - i.lasting("placed_at") % YEAR_US, "us")),
        ("weight_kg double", _weight),
        ("channel enum('web','app','store')", lambda i: v.natural(i.lasting("channel"), 1, 3)),
    ),
    indexed=("customer_id",),
    added=(
        f"priority tinyint not null default '{ADDED_DEFAULT}'",
        lambda i: v.whole(i.latest("priority"), 1, 5),
    ),
)


def _email(images: Images) -> pa.Array:
    return v.joined(v.chosen(images.lasting("first"), MAIL_NAMES), ".", v.text_of(images.key), "@example.org")


def _birthday(images: Images) -> pa.Array:
    random = images.lasting("birthday")
    return v.null_where(v.date(START_US - (18 + random % np.uint64(60)) * YEAR_US), v.rarely(random, 5))


def _preferences(images: Images) -> pa.Array:
    random = images.latest("preferences")
    return v.null_where(v.chosen(random, PREFERENCES), ~v.rarely(random, 60))


def _about(images: Images) -> pa.Array:
    random = images.latest("about")
    return v.null_where(v.joined(v.chosen(random, NOTES), "\n"), ~v.rarely(random, 8))


CUSTOMERS = Definition(
    columns=(
        ("id bigint unsigned primary key", lambda i: pa.array(i.key)),
        ("email varchar(96) not null", _email),
        (
            "full_name varchar(80) not null",
            lambda i: v.joined(
                v.chosen(i.lasting("first"), FIRST_NAMES), " ", v.chosen(i.lasting("family"), FAMILY_NAMES)
            ),
        ),
        ("country char(2) not null", lambda i: v.chosen(i.latest("country"), COUNTRIES)),
        ("tier enum('bronze','silver','gold') not null", lambda i: v.natural(i.latest("tier"), 1, 3)),
        (
            "interests set('garden','books','music','sport')",
            lambda i: v.natural(i.latest("interests"), 0, 15),
        ),
        ("birthday date", _birthday),
        ("member_since year", lambda i: v.natural(i.lasting("member_since"), 1999, 2025)),
        ("seen_at timestamp(3) null", lambda i: v.moment(START_US - i.latest("seen_at") % YEAR_US, "ms")),
        ("credit decimal(12,2) not null", lambda i: v.decimal(i.latest("credit"), -50_000, 500_000, 12, 2)),
        ("points mediumint unsigned not null", lambda i: v.natural(i.latest("points"), 0, 9_999_999)),
        ("verified bit(1) not null", lambda i: v.natural(i.latest("verified"), 0, 1)),
        ("preferences json", _preferences),
        ("about text", _about),
        *REPLICATION,
    ),
    is_soft_delete=True,
)


def _counted_at(images: Images) -> pa.Array:
    random = images.latest("counted_at")
    return v.null_where(v.moment(START_US - random % YEAR_US, "s"), v.rarely(random, 6))


INVENTORY = Definition(
    columns=(
        ("sku bigint primary key", lambda i: pa.array(i.key.view(np.int64))),
        ("warehouse smallint unsigned not null", lambda i: v.natural(i.lasting("warehouse"), 1, 400)),
        (
            "label varchar(64) not null",
            lambda i: v.joined(
                v.chosen(i.lasting("colour"), COLOURS), " ", v.chosen(i.lasting("label"), PRODUCTS)
            ),
        ),
        ("quantity int not null", lambda i: v.whole(i.latest("quantity"), -20, 5_000)),
        ("reserved int unsigned not null", lambda i: v.natural(i.latest("reserved"), 0, 300)),
        (
            "unit_cost decimal(20,6) not null",
            lambda i: v.decimal(i.latest("unit_cost"), 1, 4_000_000_000, 20, 6),
        ),
        ("barcode binary(12) not null", lambda i: v.blob(i.lasting("barcode"), 12)),
        ("cutoff time", lambda i: v.time_of_day(below(i.lasting("cutoff"), 86_400))),
        ("counted_at datetime", _counted_at),
        ("volume float", lambda i: pa.array(v.real(i.lasting("volume"), 9).astype(np.float32))),
        ("shelf_flags bit(12)", lambda i: v.natural(i.latest("shelf_flags"), 0, 4095)),
        *REPLICATION,
    ),
    is_soft_delete=True,
    is_active_active=True,
)


def definitions(count: int) -> list[tuple[str, Definition]]:
    """The first `count` tables: orders, customers, inventory, then further tables like orders."""
    first = [("orders", ORDERS), ("customers", CUSTOMERS), ("inventory", INVENTORY)]
    further = [(f"orders_{place}", ORDERS) for place in range(2, count - 1)]
    return [*first, *further][:count]
