"""The rules, and what the checker found out about each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

# Every rule has a name that stays, and says what must hold.
RULES: dict[str, str] = {
    # Creates.
    "acknowledged-create-kept": "A job whose create was acknowledged is there.",
    "one-job-a-create": "A create makes one job at most, the one that it answered.",
    "no-phantom-job": "A job that is there was asked for.",
    "failed-create-absent": "A create that surely was not done left no job.",
    "rolled-back-create-absent": "A create in a transaction that was rolled back left no job.",
    "bulk-create-whole": "Of the jobs of one create all are there, or none.",
    "one-job-a-key": "A key has one job, which every answer names and at most one calls new.",
    # Retries.
    "acknowledged-retry-kept": "A retry that was acknowledged has its event.",
    "no-phantom-retry": "A retry that is there was asked for.",
    # Attempts.
    "claim-kept": "A handler runs under a claim that is there: job, attempt, worker and token.",
    "token-started-once": "No claim starts a handler twice.",
    "starts-explained": "Between two starts of a job stands the event that queued it again.",
    "renewal-kept": "A renewal that was acknowledged has its event in its attempt.",
    "progress-kept": "Progress that was acknowledged has its event in its attempt.",
    "completion-kept": "An outcome that was acknowledged has its event in its attempt.",
    "success-ended": "A job succeeded only where its handler came to its end under that claim.",
    "result-of-the-success": "The stored result is of the claim under which the job succeeded.",
    "nothing-after-lease-lost": "Who heard that the attempt was lost changed nothing any more.",
    "earlier-attempt-refused": "Who claimed a job again writes nothing for the attempt before.",
    # Order.
    "best-first": "A claim takes no job while a better one surely is there and free.",
    # Reads.
    "reads-are-prefixes": "What a read shows is what the job's first events make.",
    "reads-go-forward": "A later read shows what an earlier one did, or was acknowledged before.",
    "feed-in-order": "A reader that follows the feed is told each event once, in order.",
    "feed-complete": "A reader that follows the feed is told every event and no other.",
    # Stops.
    "no-claim-after-stop": "A worker that was told to stop claims nothing more.",
    "exit-in-grace": "A worker that was told to stop ends within its grace.",
}


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that was broken, and how; `job` is an id, "" where none is concerned."""

    rule: str
    text: str
    job: str = ""

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}" + (f" (job {self.job})" if self.job else "")


@dataclass(slots=True)
class Verdict:
    """What the checker says.

    `unknown` are sentences on what there was too little of; with one of them a history
    without violations is no pass. `counts` has how often each rule was applied, how often
    it could not be decided ("best-first, undecided"), and what the history holds.
    """

    violations: list[Violation] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=Counter)

    @property
    def word(self) -> str:
        """`fail`, `unknown` or `pass`."""
        return "fail" if self.violations else "unknown" if self.unknown else "pass"

    def hold(self, rule: str, holds: bool, text: str = "", job: str = "") -> None:
        """Apply `rule` once; where it does not hold, `text` says how."""
        assert rule in RULES
        self.counts[rule] += 1
        if not holds:
            self.violations.append(Violation(rule, text, job))

    def cannot_decide(self, rule: str) -> None:
        """Count a case of `rule` that the history leaves open."""
        assert rule in RULES
        self.counts[f"{rule}, undecided"] += 1
