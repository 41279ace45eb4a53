"""A warehouse that version 0.1.0 built, as tests/golden/warehouses has it, put into a folder.

It read the first two thirds of the golden stream `orders` from {folder}/log, in a batch each, and wrote them as CSV to {folder}/tree. `tree_after` and `current_rows.json` are what it
made of the last third.
"""

import io
import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from support import golden
from tidemark.wire.framing import scan

# Where the files say that they are.
PLACE = "/data/0.1.0"


def unpack(folder: Path) -> None:
    """State folder, tree, and the log up to the second third."""
    with tarfile.open(golden("warehouses/0.1.0.tar.xz")) as packed:
        packed.extractall(folder, filter="data")
    (folder / "state").mkdir()
    for name in ("catalog", "warehouse"):
        (folder / name).rename(folder / "state" / name)
    move(folder, PLACE, str(folder))
    (folder / "log").mkdir()
    for number in (1, 2):
        add_log(folder, number)


def add_log(folder: Path, number: int) -> None:
    """A third of the stream."""
    stream = golden("streams/orders.bin").read_bytes()
    pieces = list(scan(io.BytesIO(stream)))
    ends = [0, *(pieces[len(pieces) * third // 3].offset for third in (1, 2)), len(stream)]
    (folder / "log" / f"{number}.bin").write_bytes(stream[ends[number - 1] : ends[number]])


def move(folder: Path, old: str, new: str) -> None:
    """Writes another place into the files of the catalog and the tables, which have whole paths."""
    for path in (folder / "state" / "catalog").glob("*/*"):
        path.write_text(path.read_text().replace(old, new))
    for path in (folder / "state" / "warehouse").rglob("*.parquet"):
        table = pq.ParquetFile(path).read()
        for number, field in enumerate(table.schema):
            if pa.types.is_string(field.type):
                changed = pc.replace_substring(table.column(number), old, new)
                table = table.set_column(number, field, changed)
        # As Spark writes timestamps.
        pq.write_table(table, path, use_deprecated_int96_timestamps=True)
