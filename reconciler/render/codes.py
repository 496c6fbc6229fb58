"""The finding codes of templates."""

from __future__ import annotations

from reconciler.model.findings import Code, Severity

TEMPLATE_FAILED = Code("template-failed", Severity.ERROR)
TEMPLATE_NOT_USED = Code("template-not-used", Severity.WARNING)

ALL: tuple[Code, ...] = (TEMPLATE_FAILED, TEMPLATE_NOT_USED)
