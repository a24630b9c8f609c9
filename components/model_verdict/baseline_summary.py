"""Summary of the baseline in the model verdict: its name, and newer skipped models.

The driver makes it from ML Metadata and passes it to the executor as an exec property.
"""

from __future__ import annotations

from sluice.config_section import Section
from sluice.record.verdict import Check


class SkippedModel(Section):
    """A blessed model, newer than the baseline, that was skipped.

    Attributes:
      name: display name.
      why: such as ``retired: wrong labels``.
      retired: whether a person retired it; False if its files are gone.
    """

    name: str
    why: str
    retired: bool


class BaselineSummary(Section):
    """The model that the candidate is compared with, and newer ones that were skipped.

    Attributes:
      pipeline: name of the pipeline; empty where no driver made the summary.
      name: display name of the baseline; None if there is none.
      is_candidate: whether the latest blessed model is the candidate itself.
      skipped: newer blessed models, newest first.
    """

    pipeline: str = ""
    name: str | None = None
    is_candidate: bool = False
    skipped: tuple[SkippedModel, ...] = ()

    @property
    def is_lost(self) -> bool:
        """Whether there is no baseline because its files are gone."""
        nothing = self.name is None and not self.is_candidate
        return nothing and any(not item.retired for item in self.skipped)

    @property
    def why_none(self) -> str:
        """The reason why there is no baseline."""
        if self.is_candidate:
            return "not compared: this model is the latest blessed one itself"
        if self.is_lost:
            first = f"sluice models retire {self.pipeline} artifact:ID --reason WHY"
            if not self.pipeline:  # In a service: there is no driver.
                first = "leave the thresholds with change out of this run's config"
            return (
                "the baseline is lost; restore its files, or let this model be the "
                f"first: {first}"
            )
        if self.skipped:
            return "no baseline: all models blessed before are retired"
        return "no baseline: no model was blessed before this one"

    def row(self) -> Check | None:
        """Returns the verdict's row about the baseline, None without any."""
        if self.name is None and not self.skipped:
            return None
        skipped = [f"{item.name} is {item.why}" for item in self.skipped]
        prefix = "an older model is used: " if self.name and skipped else ""
        name = "this model itself" if self.is_candidate else self.name or "none"
        why = prefix + "; ".join(skipped)
        return Check("baseline", "overall", None, name, None, True, why)
