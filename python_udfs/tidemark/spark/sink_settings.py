"""The settings of a sink on their way to its tasks.

The sink URI travels with `${NAME}` in place of secrets, and the changefeed as the path that was given: what is in an option of a data source may be logged. The
environment of the tasks, and the file, must be those of the driver.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from tidemark.config import Settings, load
from tidemark.config.secrets import expand_environment


def settings_option(changefeed: Any, sink_uri: str | None, compat: Any) -> str:
    if isinstance(changefeed, str) and changefeed:
        changefeed = os.path.abspath(changefeed)
    text = json.dumps({"changefeed": changefeed, "sink_uri": sink_uri, "compat": compat})
    # Spark would take ${NAME} in a statement for a variable of its own, and put nothing in its place.
    return text.replace("$", "\\u0024")


def settings_of(options: Mapping[str, str]) -> Settings:
    given = json.loads(options["settings"])
    uri = given["sink_uri"]
    uri = expand_environment(uri, os.environ) if uri else None
    return load(given["changefeed"], uri, given["compat"])
