"""The rules of plain English that tools/style.py checks: what to look for, why, and what to write."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

#: The most words of a sentence in a document.
MOST_WORDS = 40

#: The beginning of a sentence, as the first words of a pattern.
_START = r"(?:^|(?<=[.!?:] ))"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Words to avoid, what to write instead, and an example of each."""

    #: A regular expression; letters match in either case, except for a pattern that begins a sentence.
    pattern: str
    #: Why, and what to write.
    remedy: str
    bad: str
    good: str
    #: Whether it holds for documents alone: in code the words have another use.
    only_documents: bool = False
    #: Whether it holds for headings alone.
    only_headings: bool = False
    regex: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        """Compile the pattern."""
        flags = 0 if self.pattern.startswith(_START) else re.IGNORECASE
        object.__setattr__(self, "regex", re.compile(self.pattern, flags))


RULES = (
    # --- passives and stiff verbs
    Rule(
        pattern=r"\b(?:is|are|was|were|be|been|being) (?:not |also |then )?told\b(?! apart)",
        remedy="say who does it: 'shows', 'reports', 'prints', 'is known'",
        bad="The missing file is told in one line.",
        good="One line names the missing file.",
    ),
    Rule(
        pattern=r"\b(?:is|are|was|were) (?:not |also )?said (?:by|in|to|of|with|at|on|about|there|here|once)\b",
        remedy="say who does it: 'X states', 'X defines'",
        bad="What a file holds is said by its types.",
        good="The types define what a file holds.",
    ),
    Rule(
        pattern=r"\bit (?:is|was|has been|should be|must be|can be) (?:said|noted|known|seen|told|mentioned) that\b",
        remedy="state the fact",
        bad="It should be noted that the run takes a minute.",
        good="The run takes a minute.",
    ),
    Rule(
        pattern=r"\b(?:is|are|was|were) (?:not )?to be\b",
        remedy="'must be', or an imperative: 'save it as ...'",
        bad="The file is to be saved first.",
        good="Save the file first.",
    ),
    Rule(
        pattern=r"\bcould have (?:been )?(?:told|seen|shown|found|noticed|detected)\b",
        remedy="'the smallest change that this run detects', 'detectable'",
        bad="It ends with the change that could have been told.",
        good="It ends with the smallest change that it can detect.",
    ),
    Rule(
        pattern=r"\bhow far to (?:believe|trust)\b",
        remedy="'how reliable it is'",
        bad="The table says how far to believe it.",
        good="The table shows how reliable it is.",
    ),
    Rule(
        pattern=r"\bheld (?:against|beside|up against)\b",
        remedy="'compared with', 'checked against'",
        bad="The forecast is held against the measurement.",
        good="The forecast is compared with the measurement.",
    ),
    Rule(
        pattern=r"\bset against\b",
        remedy="'compared with'",
        bad="Set against the old build, it is slower.",
        good="Compared with the old build, it is slower.",
    ),
    Rule(
        pattern=r"\b(?:speaks?|spoke|spoken) of\b",
        remedy="'names', 'mentions'",
        bad="The options that a page speaks of exist.",
        good="The options that a page names exist.",
    ),
    Rule(
        pattern=r"\bmend(?:s|ed|ing)?\b",
        remedy="'fix', 'repair'",
        bad="Mend what it reports.",
        good="Fix what it reports.",
    ),
    Rule(
        pattern=r"\bis what (?:it|the|this|that|makes|does|tells|says)\b",
        remedy="turn it round: 'X does Y', not 'Y is what X does'",
        bad="Reject is what the exit code does.",
        good="The exit code rejects it.",
        only_documents=True,
    ),
    # --- places
    Rule(
        pattern=r"\b(?:lies?|lay|lain|lying) (?:in|under|beside|there|here|next to)\b(?! wait)",
        remedy="a file 'is in' a folder",
        bad="The run lies in build/perf.",
        good="The run is in build/perf.",
    ),
    Rule(
        pattern=r"\b(?:stands?|stood|standing) (?:in(?! for)|there|here|below|above|beside|next to)\b",
        remedy="'is in', 'is below'",
        bad="The reason stands in the last column.",
        good="The last column gives the reason.",
    ),
    Rule(
        pattern=r"\bthat there (?:is|are)(?=$|[.,;:)])",
        remedy="'available', 'all', or nothing",
        bad="It lists the boards that there are.",
        good="It lists all boards.",
        only_documents=True,
    ),
    # --- history
    Rule(
        pattern=r"\bno longer\b",
        remedy="state what holds today; the changelog keeps what was",
        bad="The option no longer takes a file.",
        good="The option takes a folder.",
        only_documents=True,
    ),
    Rule(
        pattern=r"\b(?:it|they|that|which|this|suite|runs?|we) used to\b",
        remedy="state what holds today; the changelog keeps what was",
        bad="The suite used to compile it.",
        good="The suite installs it.",
    ),
    Rule(
        pattern=r"\b(?:formerly|nowadays|as of now|hitherto|in the past)\b",
        remedy="state what holds today; the changelog keeps what was",
        bad="Formerly a run took an hour.",
        good="A run takes a minute.",
    ),
    Rule(
        pattern=r"\b(?:was|were|has been|have been) (?:rewritten|renamed|introduced|reworked|redesigned)\b",
        remedy="state what holds today; the changelog keeps what was",
        bad="The command was renamed for clarity.",
        good="The command is called 'compare'.",
        only_documents=True,
    ),
    # --- the order of words
    Rule(
        pattern=_START + r"(?:Whoever|Who(?! (?:computes|competes|else|has|have|is|it|ran|runs|started))) [a-z]+ "
        r"(?=[^.?]{25,}(?:\.|$))",
        remedy="'If you ...', 'Readers who ...'",
        bad="Who wants more pairs raises the budget.",
        good="If you want more pairs, raise the budget.",
    ),
    Rule(
        pattern=_START
        + r"Of (?:the(?! \d)|several|all|these|those|what|its|each|them|it|this|that|an?)\b(?![^,.]{0,40}, )",
        remedy="begin with the subject: 'A row of several models has the range'",
        bad="Of the kernels it shows the slowest.",
        good="It shows the slowest kernels.",
    ),
    Rule(
        pattern=_START + r"(?:Is|Are|Does|Do|Has|Have|Did|Was|Were)\b[^?.]*\? Then\b",
        remedy="'If ..., ...'",
        bad="Does it say 'invalid'? Then free the machine.",
        good="If it says 'invalid', free the machine.",
    ),
    Rule(
        pattern=r"^(?:What (?:is|are|was|were|it|they|there|can|must)|How (?:far|wrong|sure)|That)\b[^?]*$",
        remedy="a heading names the task or the thing: 'Compare two builds'",
        bad="What is compared with what",
        good="Compare two builds",
        only_headings=True,
    ),
    Rule(
        pattern=r"\b(?:not|never|nobody|cannot)(?: \w+)? (?:nothing|nobody|never)\b"
        r"|\b(?:not|never) (?:without|un(?:able|clear|common|equal|important|known|like|likely|reasonable|usual))\b",
        remedy="say it once, without two negatives",
        bad="It does not report nothing.",
        good="It reports the reason.",
    ),
    Rule(
        pattern=r"\b(?:each|either|any|one) of the two is\b",
        remedy="'either works', 'both are', or name the one",
        bad="Each of the two is enough on a fresh Debian.",
        good="Either command works on a fresh Debian.",
    ),
    Rule(
        pattern=r"\bthe (?:former|latter)\b",
        remedy="name it again",
        bad="Of phases and kernels, the latter are short.",
        good="Kernels are short.",
    ),
    Rule(
        pattern=r"\brespectively\b",
        remedy="pair the values: '2 % for phases, 5 % for operators'",
        bad="The margins are 2 % and 5 % respectively.",
        good="The margins are 2 % for phases and 5 % for operators.",
    ),
    # --- words
    Rule(
        pattern=r"\b(?:there(?:in|of|by|upon|to)|where(?:by|in|of|upon|to)|here(?:by|to|in)|whosoever|whilst|amongst|upon"
        r"|hence|thus|ere|albeit|shall|nought|notwithstanding)\b",
        remedy="a word of today: 'in it', 'so', 'on', 'must'",
        bad="The field whereby it is found.",
        good="The field by which it is found.",
    ),
    Rule(
        pattern=r"\b(?:in order to|due to the fact|with regards? to|with respect to|in terms of|prior to"
        r"|subsequent(?:ly)?|for the purpose of|in the event of|utili[sz](?:e[sd]?|ing)|leverag\w+|facilitat\w+)\b",
        remedy="the short word: 'to', 'because', 'about', 'before', 'use'",
        bad="In order to measure, plug it in.",
        good="To measure, plug it in.",
    ),
    Rule(
        pattern=r"\b(?:simply|obviously|of course|basically|needless to say|please|it goes without saying)\b",
        remedy="drop it",
        bad="Simply run it again.",
        good="Run it again.",
    ),
    Rule(
        pattern=r"\b(?:e\.g\.|i\.e\.|etc\b)(?!/|[/\w])(?<!/etc)",
        remedy="'for example', 'that is', or name them all",
        bad="Phones, boards etc. are devices.",
        good="Phones and boards are devices.",
        only_documents=True,
    ),
    Rule(
        pattern=r"\b(?:all )?but for\b",
        remedy="'except'",
        bad="It runs all tests but for the longest.",
        good="It runs all tests except the longest.",
    ),
    Rule(
        pattern=r"\bfor (?:lack|want) of\b",
        remedy="'because X is missing'",
        bad="It is skipped for lack of a compiler.",
        good="It is skipped because there is no compiler.",
    ),
    Rule(
        pattern=r"\bin vain\b",
        remedy="'without effect', or what came of it",
        bad="It waits in vain for the lock.",
        good="It waits for the lock and does not get it.",
    ),
    Rule(
        pattern=r"\b(?:takes|wants) (?:root|a password)\b",
        remedy="'needs root', 'needs a password'",
        bad="The recorder takes root.",
        good="The recorder needs root.",
    ),
    Rule(
        pattern=r"\bholds? (?:also |as well )?(?:for|of)\b|\bholds? good\b",
        remedy="'applies to', 'is true of'",
        bad="The same holds for kernels.",
        good="The same applies to kernels.",
        only_documents=True,
    ),
    Rule(
        pattern=r"\bin turns\b",
        remedy="'take turns', 'alternate', 'in turn'",
        bad="Both builds are measured in turns.",
        good="Both builds take turns.",
    ),
    Rule(
        pattern=r"\b(?:and|or) (?:its |their |the )like\b",
        remedy="name them, or 'for example'",
        bad="It needs a compiler and the like.",
        good="It needs a compiler and make.",
    ),
    Rule(
        pattern=r"\bone's own\b",
        remedy="'your'",
        bad="It compares with one's own build.",
        good="It compares with your own build.",
    ),
    Rule(
        pattern=r"\bbe it\b",
        remedy="'whether ... or'",
        bad="Any device, be it a phone or a board.",
        good="Any device: a phone or a board.",
    ),
    Rule(
        pattern=r"\bof old\b(?! (?:and|over)\b)",
        remedy="'old', 'earlier'",
        bad="It reads baselines of old.",
        good="It reads old baselines.",
    ),
    Rule(
        pattern=r"\bat the begin\b",
        remedy="'at the beginning', 'first'",
        bad="Assignments at the begin are dropped.",
        good="Assignments at the beginning are dropped.",
    ),
    Rule(
        pattern=r"\bworth (?:telling|the name|speaking)\b",
        remedy="'useful', or the figure",
        bad="Emulation has no speed worth telling.",
        good="Times under emulation are useless.",
    ),
    Rule(
        pattern=r"\b(that|the|a|an|is|are|of|to|in|it|with|for|on|as|by|and|or|be|this) \1\b(?<!that that)",
        remedy="drop one of the two words",
        bad="It is is slower.",
        good="It is slower.",
    ),
)
