"""The project on dbt-spark's own adapter: what it cannot apply there is refused, and the defaults go on working."""

from pathlib import Path

import pytest

from dbt_support import messages

ROOT = Path(__file__).parent.parent.parent
PROFILE = (
    "tidemark: {target: t, outputs: {t: {type: spark, method: session, host: none, schema: s, threads: 1}}}"
)


@pytest.fixture
def parse(tmp_path, monkeypatch):
    from dbt.adapters.factory import reset_adapters
    from dbt.cli.main import dbtRunner

    monkeypatch.chdir(ROOT)
    (tmp_path / "profiles.yml").write_text(PROFILE)
    folders = ("--target-path", str(tmp_path / "target"), "--log-path", str(tmp_path / "logs"))

    def run(variables):
        reset_adapters()
        return dbtRunner().invoke(
            ["parse", "--profiles-dir", str(tmp_path), *folders, "--log-level", "none", "--vars", variables]
        )

    yield run
    reset_adapters()


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ("{changefeed: {filter: {rules: ['shop.*']}}}", "changefeed"),
        ("{sink_uri: 'file:///x?protocol=csv'}", "sink_uri"),
        ("{compat: ticdc}", "compat"),
        ("{compat: {base: design, soft_delete_from_zero: ticdc}}", "compat"),
    ],
)
def test_settings_that_a_stock_target_ignores_are_refused(parse, variables, name):
    outcome = parse(variables)
    assert not outcome.success
    said = messages(outcome)
    assert "a target of `type: spark` does not read the vars changefeed, sink_uri and compat" in said
    assert f"Leave out {name}, or use a profile of `type: tidemark`" in said


def test_a_stock_target_takes_the_defaults(parse):
    outcome = parse("{event_logs: [{upstream_id: '1', path: x}]}")
    assert outcome.success, messages(outcome)
