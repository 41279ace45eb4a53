"""What a check of a configuration says: a finding, and the error that carries all of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from tidemark.config.secrets import BLANK, redact, redact_uri
from tidemark.errors import TidemarkError

ERROR = "error"
NOTE = "note"
# TiCDC applies it and Tidemark does not: an error for whoever sends, nothing to commands that only look at rules.
UNAPPLIED = "unapplied"
# Given as the value of a finding whose value is a secret.
HIDDEN = object()


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

    def unapplied(self, key: str, instead: str) -> None:
        """A setting that would change what is sent, and what Tidemark would do instead."""
        self._add(UNAPPLIED, key, f"Tidemark does not apply it: {instead}", None, "")

    def moot(self, key: str, why: str) -> None:
        """A setting that cannot change what is sent, and why."""
        self.note(key, f"changes nothing: {why}")

    def _add(self, severity: str, key: str, message: str, value: object, allowed: str) -> None:
        self.append(Finding(severity, key, redact(message), _shown(value), allowed))

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self if finding.severity == ERROR]

    def for_sending(self) -> Findings:
        """The same, with an error in place of every setting that is not applied."""
        return Findings(
            replace(finding, severity=ERROR) if finding.severity == UNAPPLIED else finding for finding in self
        )


def _shown(value: object) -> str:
    if value is None or value is HIDDEN:
        return BLANK if value is HIDDEN else ""
    # A text is redacted before it gets its quotes: a password may have quotes of its own.
    return redact(repr(redact_uri(value))) if isinstance(value, str) else redact(repr(value))


class ConfigError(TidemarkError, ValueError):
    """The configuration cannot be used. `findings` has every reason, not only the first."""

    def __init__(self, findings: list[Finding]):
        self.findings = tuple(findings)
        head = (
            "the configuration has 1 error"
            if len(findings) == 1
            else f"the configuration has {len(findings)} errors"
        )
        super().__init__("\n".join([head, *(f"  {finding}" for finding in findings)]))
