"""What the tests of `dbt build` cost beside the models: with all rows new, with nothing new, and with a few new rows.

    python benchmarks/bench_tests.py [--rows 200000] [--more 1000] [--keys 20000]

Three clusters write the same active-active table (benchmarks/clusters_stream.py). Reported are the core seconds of `dbt run` and `dbt build`, and the seconds of the tests that took
longest. The last line runs all tests again (`run_all_tests: true`): what a build would cost that does not know which tests have passed.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from bench_models import CLUSTERS, dbt, write
from clusters_stream import Cluster


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200_000, help="row changes of the first run")
    parser.add_argument("--more", type=int, default=1000, help="row changes of the second run")
    parser.add_argument("--keys", type=int, default=20_000, help="different keys")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        measure(Path(name), args)


def measure(folder: Path, args: argparse.Namespace) -> None:
    clusters = [Cluster(folder / "log" / str(n + 1), n, CLUSTERS, args.keys) for n in range(CLUSTERS)]
    write(clusters, args.rows)
    dbt(folder, "seed")
    report("first", dbt(folder, "build"))
    # Once more, since Java compiles what a run without anything new needs.
    for _ in range(2):
        run, build = dbt(folder, "run"), dbt(folder, "build")
    report("nothing new, dbt run", run)
    report("nothing new, dbt build", build)
    write(clusters, args.more)
    report(f"{args.more} more, dbt run", dbt(folder, "run"))
    report("and its tests, dbt build", dbt(folder, "build"))
    write(clusters, args.more)
    report(f"{args.more} more, dbt build", dbt(folder, "build"))
    report("all tests again, dbt test", dbt(folder, "test", variables={"run_all_tests": True}))


def report(what: str, run) -> None:
    print(f"{what:28}{run.seconds:8.1f} s{run.cpu:8.1f} CPU s")
    for seconds, name in sorted(run.tests, reverse=True)[:4]:
        if seconds > 0.5:
            print(f"{'':30}{seconds:8.1f} s {name}", flush=True)


if __name__ == "__main__":
    main()
