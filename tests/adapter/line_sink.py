"""A data source that writes rows as lines of files, one file per task, and a mark when all of them are there."""

from pathlib import Path

from pyspark.sql.datasource import DataSource, DataSourceWriter, WriterCommitMessage


class LineSink(DataSource):
    @classmethod
    def name(cls):
        return "line_sink"

    def schema(self):
        return "id bigint, name string"

    def writer(self, schema, overwrite):
        return LineWriter(self.options["path"])


class LineWriter(DataSourceWriter):
    def __init__(self, path):
        self.path = path

    def write(self, rows):
        from pyspark import TaskContext

        lines = [f"{row.id} {row.name}\n" for row in rows]
        if any("bad" in line for line in lines):
            raise ValueError("a bad row")
        Path(self.path, f"{TaskContext.get().partitionId()}.txt").write_text("".join(lines))
        return WriterCommitMessage()

    def commit(self, messages):
        Path(self.path, "done").write_text(str(len(messages)))
