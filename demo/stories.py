"""What the AI runs of the demo's site wrote, what editors then did, and where the answer may surprise."""

from __future__ import annotations

from typing import NamedTuple


class Story(NamedTuple):
    """
    One AI run, and what became of what it wrote.

    :ivar wrote: what the AI wrote
    :ivar then: what editors, or whoever else, then did
    :ivar one_would_say: what somebody would answer who had seen it all
    :ivar why: why the answer is another, where it is
    :ivar first: whether it is among those that tell what there is to know
    """

    wrote: str
    then: str
    one_would_say: str
    why: str = ""
    first: bool = False


_ACCEPTED, _EDITED, _DISCARDED, _UNKNOWN = "accepted_unchanged", "edited", "discarded", "unknown"

#: The stories by the first word of the run's uuid: what it bears in the data.
STORIES = {
    "01": Story("a text", "left it alone", _ACCEPTED, first=True),
    "02": Story("a text", "rewrote it", _EDITED, first=True),
    "03": Story("a text", "deleted it", _DISCARDED, first=True),
    "04": Story("a text", "left it; history was cleaned up", _UNKNOWN, first=True),
    "05": Story("a hidden text", "released it as it was", _ACCEPTED, "a release is a change of the record", first=True),
    "06": Story("a text", "opened it and saved", _ACCEPTED, "TYPO3 records a save without a change", first=True),
    "07": Story("a text", "moved it", _ACCEPTED, "a move is a change of the record", first=True),
    "08": Story("a text", "copied it", _ACCEPTED),
    "09": Story("a text", "translated it", _ACCEPTED),
    "10": Story("a text", "edited it in that second", _EDITED, "history counts in whole seconds", first=True),
    "11": Story("a text", "edited it, and took that back", _ACCEPTED, "a change counts, undone or not", first=True),
    "12": Story("a text", "deleted it, and restored it", _ACCEPTED, "a restored record was changed twice"),
    "13": Story("a text", "deleted it for good", _DISCARDED),
    "14": Story("a text", "changed it by SQL", _EDITED, "SQL leaves no history", first=True),
    "15": Story("a text", "saved it by a slow request", _EDITED, "history has the request's start"),
    "16": Story("a text", "edited it during the run", _EDITED, "it was before the run said so"),
    "17": Story("a text", "deleted its page", _DISCARDED, first=True),
    "18": Story("a page", "edited a text on it", _ACCEPTED),
    "19": Story("a text, twice", "left it alone", _ACCEPTED),
    "20": Story("a text", "left it; another AI run did not", _ACCEPTED),
    "21": Story("two texts", "deleted one of them", _DISCARDED, first=True),
    "22": Story("a draft of a text", "published it", _ACCEPTED, "publishing moves the draft's history away"),
    "23": Story("a draft of a text", "published it", _ACCEPTED, "publishing is a change of the record", first=True),
    "24": Story("a draft of a text", "discarded the draft", _DISCARDED, "the text itself stayed untouched"),
    "25": Story("a draft of a text", "left the draft", _UNKNOWN, "the text itself stayed untouched"),
    "26": Story("a new text, as draft", "published it", _ACCEPTED, "publishing is a change of the record"),
    "27": Story("a new text, as draft", "discarded it", _DISCARDED),
    "28": Story("a text", "drafted another, not published", _ACCEPTED),
    "29": Story("an old text anew", "edited it; history was cut", _EDITED),
    "30": Story("an old text anew", "left it; history was cut", _UNKNOWN, "older history of it was left"),
    "31": Story("what cannot be read", "", _UNKNOWN),
    "32": Story("a text, badly recorded", "left it alone", _ACCEPTED, "the run's record names no valid uid"),
    "33": Story("a record of an extension", "removed the extension", _UNKNOWN),
    "34": Story("a text, just now", "have a week to edit it", "not yet", first=True),
    "other": Story("the text of run 20", "left it alone", _ACCEPTED),
}


def story_of(uuid: str) -> tuple[str, Story]:
    """Return what a run is called, and its story."""
    name = uuid.partition("-")[0]
    return name, STORIES[name]
