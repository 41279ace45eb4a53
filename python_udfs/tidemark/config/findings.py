"""What a check of a configuration says: a finding, and the error that carries all of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from tidemark.config.secrets import redact
from tidemark.errors import TidemarkError

ERROR = "error"
NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """One sentence about one key. `value` is what was given, as text and without secrets; `allowed` is what may be given."""

    severity: str
    key: str
    message: str
    value: str = ""
    allowed: str = ""

    def __str__(self) -> str:
        shown = f" = {self.value}" if self.value else ""
        allowed = f"; allowed: {self.allowed}" if self.allowed else ""
        return f"{self.key}{shown}: {self.message}{allowed}"

    def as_dict(self) -> dict[str, str]:
        return asdict(self)


class Findings(list):
    """The findings of one check, in the order in which they were met."""

    def error(self, key: str, message: str, value: object = None, allowed: str = "") -> None:
        self._add(ERROR, key, message, value, allowed)

    def note(self, key: str, message: str, value: object = None, allowed: str = "") -> None:
        self._add(NOTE, key, message, value, allowed)

    def _add(self, severity: str, key: str, message: str, value: object, allowed: str) -> None:
        shown = "" if value is None else redact(value if isinstance(value, Hidden) else repr(value))
        self.append(Finding(severity, key, redact(message), shown, allowed))

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self if finding.severity == ERROR]


class Hidden(str):
    """Text to show in place of a secret value."""

    __slots__ = ()


HIDDEN = Hidden("xxxxx")


class ConfigError(TidemarkError, ValueError):
    """The configuration cannot be used. `findings` has every reason, not only the first."""

    def __init__(self, findings: list[Finding]):
        self.findings = tuple(findings)
        head = "the configuration has 1 error" if len(findings) == 1 else f"the configuration has {len(findings)} errors"
        super().__init__("\n".join([head, *(f"  {finding}" for finding in findings)]))
