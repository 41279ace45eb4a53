"""Ctrl-C and SIGTERM while dbt runs: one line, no stack traces, exit status 130 or 143.

Left alone, dbt waits for the statements that run and prints a stack trace. Here Spark's jobs are cancelled, so
that models end soon and give back what they hold, such as the lease of a storage tree. dbt still writes its
run_results.json; then the process ends. What takes too long is cut off: tables and trees survive that.
"""

from __future__ import annotations

import atexit
import multiprocessing.util
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tidemark.interrupts import NAMES, Interrupted

# How long models may take to end, and dbt after them.
_SECONDS_FOR_MODELS = 30.0
_SECONDS_FOR_DBT = 5.0
_SECONDS_OF_ONE_SIGNAL = 1.0

_guard = threading.Lock()
_models_in_flight = 0
_ending = threading.Event()
_began = 0.0


def model_begins() -> None:
    global _models_in_flight
    with _guard:
        _models_in_flight += 1


def model_ends() -> None:
    global _models_in_flight
    with _guard:
        _models_in_flight -= 1


def is_ending() -> bool:
    """Whether a signal has come: no further statement is to begin."""
    return _ending.is_set()


def wait_for_signal() -> None:
    """Java has gone. A signal for all processes of a terminal or a service may have reached it first: then it is on its way here, and the failure of a model is no news."""
    _ending.wait(_SECONDS_OF_ONE_SIGNAL)


def handle_in_dbt_command() -> None:
    """For the command `dbt`, whose main function is not ours. A program that uses dbt as a library keeps its handlers.

    dbt imports this adapter when it has read the profile, about a second after its start. Until then a signal ends it as Python does.
    """
    if not _is_dbt_command() or threading.current_thread() is not threading.main_thread():
        return
    for number in NAMES:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, end_dbt)


def _is_dbt_command() -> bool:
    return Path(sys.argv[0]).name == "dbt"


def end_dbt(number: int, _frame: Any) -> None:
    """Handler of a signal. A later one ends the process at once; some senders send one twice."""
    global _began
    interrupted = Interrupted(number)
    if _ending.is_set():
        if time.monotonic() - _began > _SECONDS_OF_ONE_SIGNAL:
            os._exit(interrupted.status)
        return
    _ending.set()
    _began = time.monotonic()
    command = "dbt" if _is_dbt_command() else "tidemark run"
    # The signal may have come while something was being printed.
    with suppress(RuntimeError):
        sys.stdout.flush()
    line = f"{command}: {interrupted}; what is complete is kept, and the next run goes on from there\n"
    os.write(2, line.encode())
    # What dbt, Spark and Java say of it from here on is no news.
    silence = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silence, stream)
    atexit.register(_exit, interrupted.status)
    threading.Thread(target=_end, args=[interrupted.status], daemon=True).start()
    raise interrupted


def _end(status: int) -> None:
    deadline = time.monotonic() + _SECONDS_FOR_MODELS
    while _models_in_flight and time.monotonic() < deadline:
        # Java may be gone: the signal may have been for all processes of a terminal or a service.
        with suppress(Exception):
            # Imported here: signals are handled from before Spark's modules are loaded.
            from tidemark.spark.session import cancel_jobs

            cancel_jobs()
        time.sleep(0.2)
    time.sleep(_SECONDS_FOR_DBT)
    _exit(status)


def _exit(status: int) -> None:
    """The end, with this status instead of dbt's."""
    # Without this, Python's resource tracker complains of dbt's locks.
    with suppress(Exception):
        multiprocessing.util._exit_function()
    os._exit(status)
