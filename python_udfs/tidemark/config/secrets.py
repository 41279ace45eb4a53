"""Secrets stay out of logs, error texts, documentation and everything else that a person or a tool may keep.

A URI may hold secrets in two places: the password of its authority (`//user:password@host`) and query options
(`secret-access-key=…`). `redact_uri` blanks both in one URI, `redact` blanks them in every URI and option inside a longer text.
"""

from __future__ import annotations

import re

BLANK = "xxxxx"

# A query option is secret when its name contains one of these; names that TiCDC and the object stores use, with - or _ or neither.
_SECRET_NAME = (
    r"[\w.-]*(?:password|passwd|pwd|secret|token|credential|private[-_]?key|access[-_]?key|account[-_]?key|api[-_]?key"
    r"|shared[-_]?key|encryption[-_]?key|sas|signature|ssl[-_]?key)[\w.-]*"
)
# Anything up to the last @ before the path is the authority's user part: a password may itself hold @ or : or #.
_AUTHORITY = re.compile(r"(?P<scheme>\b[A-Za-z][A-Za-z0-9+.-]*://)(?P<user>[^\s:/?@'\"]*):(?P<password>[^\s'\"]*)@(?=[^@\s]*)")
_OPTION = re.compile(rf"(?P<name>(?:(?<=[?&;])|\b){_SECRET_NAME})=(?P<value>[^&\s'\"#;]+)", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """Whether an option of this name holds a secret."""
    return re.fullmatch(_SECRET_NAME, name, re.IGNORECASE) is not None


def redact(text: str) -> str:
    """`text` with the secrets of every URI and query option in it blanked."""
    text = _AUTHORITY.sub(rf"\g<scheme>\g<user>:{BLANK}@", text)
    return _OPTION.sub(rf"\g<name>={BLANK}", text)


def redact_uri(uri: str) -> str:
    """`uri` as it may be shown: the password and secret options blanked."""
    return redact(uri)
