"""dbt inside the test process, on the shared Spark session."""

import json

from dbt.cli.main import dbtRunner


class Dbt:
    def __init__(self, spark, monkeypatch, folder, schema, project_dir="."):
        self.spark, self.folder, self.schema, self.project_dir = spark, folder, schema, project_dir
        monkeypatch.setenv("TIDEMARK_SCHEMA", schema)
        monkeypatch.setenv("DBT_PROFILES_DIR", "profiles")
        self.vars = {}

    def __call__(self, *arguments, **variables):
        """The result of one dbt command; `variables` are vars, over those in self.vars."""
        chosen = {**self.vars, **variables}
        return dbtRunner().invoke(
            [
                *arguments,
                *("--project-dir", str(self.project_dir), "--target-path", str(self.folder / "target")),
                *("--log-path", str(self.folder / "logs"), "--log-level", "none", "--log-level-file", "info"),
                *("--vars", json.dumps(chosen)),
            ]
        )

    def ok(self, *arguments, **variables):
        """The same, for a command that must succeed."""
        outcome = self(*arguments, **variables)
        assert outcome.success, f"dbt {' '.join(arguments)} failed:\n{messages(outcome)}"
        return outcome

    def fails(self, *arguments, **variables):
        """The messages of a command that must fail."""
        outcome = self(*arguments, **variables)
        assert not outcome.success, f"dbt {' '.join(arguments)} should have failed"
        return messages(outcome)

    def log(self):
        """What commands have logged: the messages of an operation are nowhere else."""
        return (self.folder / "logs" / "dbt.log").read_text()

    def rows(self, query):
        """Rows as plain dicts; {schema} in the query is this test's schema."""
        return [
            row.asDict(recursive=True) for row in self.spark.sql(query.format(schema=self.schema)).collect()
        ]

    def table(self, name, order_by="1"):
        return self.rows(f"select * from {{schema}}.{name} order by {order_by}")

    def drop(self):
        for schema in (self.schema, self.schema + "_store"):
            self.spark.sql(f"drop schema if exists {schema} cascade")


def messages(outcome):
    if outcome.exception is not None:
        return str(outcome.exception)
    return "\n".join(
        str(node.message) for node in outcome.result.results if str(node.status) not in ("success", "pass")
    )
