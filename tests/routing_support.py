"""A changefeed that writes the tables of the stream `evolve` under other names."""

# The second rule for evo is the first with a target. Column selectors know tables by their names in the source.
ROUTED = """
case-sensitive = true
[sink]
date-separator = "none"
dispatchers = [
    { matcher = ["evo.*"], partition = "index-value", topic = "{schema}_{table}" },
    { matcher = ["evo.*"], target-schema = "{schema}_x", target-table = "{table}_y" },
    { matcher = ["evo_b.*"], target-schema = "moved", target-table = "{schema}_{table}" },
]
column-selectors = [{ matcher = ["evo.t1"], columns = ["*", "!bb"] }]
"""
PLAIN = "".join(line for line in ROUTED.splitlines(keepends=True) if "target-schema" not in line)


def target(schema: str, table: str) -> tuple[str, str]:
    if schema == "evo":
        return "evo_x", f"{table}_y" if table else ""
    assert schema == "evo_b"
    return "moved", f"evo_b_{table}" if table else ""
