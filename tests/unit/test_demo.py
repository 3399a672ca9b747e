"""The demo tells each story that TYPO3 wrote down, and a reason where its answer may surprise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from demo.stories import STORIES, story_of

TYPO3 = json.loads((Path(__file__).parent.parent / "cases" / "typo3_13.4.18.json").read_text())


def test_every_run_has_a_story():
    assert {*STORIES} == {story_of(row["uuid"])[0] for row in TYPO3["tables"]["tx_nrllm_agentrun"]}


@pytest.mark.parametrize("uuid", TYPO3["expect"])
def test_a_reason_of_3_to_8_words_stands_where_the_answer_is_not_what_one_would_say(uuid):
    _, story = story_of(uuid)
    differs = (TYPO3["expect"][uuid] or "not yet") != story.one_would_say
    assert differs == (3 <= len(story.why.split()) <= 8)
    assert differs or "" == story.why
