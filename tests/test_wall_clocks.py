"""Each use of a wall clock has a purpose that a clock which jumps cannot harm; a new one has to be given one here.

Durations within a process are monotonic, and what was saved last is found by the order of saving.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wall_clocks import uses, uses_in

RECORDED = "recorded: nothing is chosen, ordered or deleted by it alone"
SHOWN = "shown only"
CHANGED = "compared with what it was, for equality: a change of the file, together with its size or id"
EXPIRY = "expiry: "

HALVES = "hidden files of killed writers, both times by the clock of their file system"
PURPOSES = {
    "modules/calls/record.py RisingClock.__init__: time.time": RECORDED + "; it rises within a process",
    "modules/calls/record.py (file): recorded_now": RECORDED,
    "modules/calls/usage.py CallMeter.record: recorded_now": RECORDED,
    "modules/calls/usage.py CallMeter.record_cached: recorded_now": RECORDED,
    "modules/index/lite_state.py _stamp: status.st_mtime_ns": CHANGED,
    "modules/index/writer_lock.py _drop_strays: time.time": EXPIRY
    + "lock collections without an alias, which a writer has for moments; one that loses it early tries again",
    "modules/index/writer_lock.py _lease: time.time": RECORDED + " but by _drop_strays; leases go by signs of life",
    "modules/llm/attempts.py retry_after_s: time.time": EXPIRY
    + "a wait of at most 60 s, where an endpoint names a moment and no date of its own",
    "modules/llm/model_files.py _stamp: stat.st_mtime_ns": CHANGED,
    "modules/memory/turns.py utc_now: datetime.now": RECORDED,
    "modules/parts.py _changed_at: Path(place).stat().st_mtime_ns": CHANGED,
    "modules/prebuilt/digests.py FileState.of: found.st_mtime_ns": CHANGED,
    "modules/prebuilt/digests.py FileState.of: found.st_ctime_ns": CHANGED,
    "modules/storage/atomic.py replacing: os.fstat(out.fileno()).st_mtime": EXPIRY + HALVES,
    "modules/storage/atomic.py _remove_abandoned: entry.stat(follow_symlinks=False).st_mtime": EXPIRY + HALVES,
    "graphs/conversation/expiry.py now_utc: datetime.now": EXPIRY + "conversations, by their last change",
    "graphs/conversation/record.py ConversationRecord.new: utc_now": RECORDED,
    "graphs/conversation/turn/history.py _given_turns: utc_now": RECORDED,
    "graphs/conversation/turn/saving.py _pair_of: utc_now": RECORDED + "; a turn stands after its parent in any case",
    "graphs/conversation/turn/store.py ConversationStore.save: utc_now": RECORDED + " but by the expiry",
    "graphs/conversation/turn_tracing.py traced: recorded_now": RECORDED,
    "graphs/conversation/turn_tracing.py _send: recorded_now": RECORDED,
    "graphs/conversations.py Conversations.delete_old_conversations: now_utc": EXPIRY + "asked for by the caller",
    "graphs/conversations.py Conversations.cleanup_expired_conversations: now_utc": EXPIRY + "asked for by the caller",
    "graphs/forks/threads.py context_of_thread: utc_now": RECORDED,
    "graphs/systems/asking_on.py _context_of: utc_now": RECORDED,
    "graphs/systems/nodes.py search_record: recorded_now": RECORDED + "; it rises within a process",
    "graphs/threads/context.py utc_now: datetime.now": RECORDED,
    "graphs/threads/context.py RunContext: utc_now": RECORDED,
    "eval/calibration/calibrate.py _calibration: datetime.now": SHOWN,
    "eval/labels/labelling.py Labelling.save: datetime.now": SHOWN,
    "eval/runs/manifest.py manifest_of: datetime.now": SHOWN,
    "eval/submissions/browsecomp_plus.py Submission.to_document: datetime.now": SHOWN,
    "app/commands/chat.py new_name: datetime.now": SHOWN + ": a name, which a random part makes unique",
    "app/server/chat/chunks.py GrowingCompletion: time.time": SHOWN,
    "app/server/keys/book.py _now: datetime.now": SHOWN,
    "app/server/keys/links.py LinkSigner.has_signed: time.time": EXPIRY
    + "links to what their holder may see; with a clock that is late they open longer",
    "app/server/keys/links.py LinkSigner.query: time.time": EXPIRY + "links, as has_signed reads it",
    "app/server/keys/spending.py KeyLedger.__init__: time.time": EXPIRY
    + "the day of a budget; what is noted under a later day counts, so going back gives no second one",
    "app/server/runs/figures.py _last_answer: RunStore(run.path).rows_file.stat().st_mtime": SHOWN,
    "app/server/runs/folder.py _stamp: status.st_mtime_ns": CHANGED,
    "app/server/serving/expiry.py expire_daily: now_utc": EXPIRY
    + "conversations; a step forward is believed a day later, if it is still there",
}


def test_every_use_of_a_wall_clock_has_a_purpose() -> None:
    found = set(uses(Path(__file__).parents[1]))
    assert found - set(PURPOSES) == set(), (
        "say here what the time is for, or use time.monotonic() or an order of saving"
    )
    assert set(PURPOSES) - found == set(), "these are gone"
    assert all(each.startswith((RECORDED, SHOWN, CHANGED, EXPIRY)) for each in PURPOSES.values())


@pytest.mark.parametrize(
    "code",
    [
        "import time\ndef f(): return time.time()",
        "from time import time\ndef f(): ...",
        "import time as clock\ndef f(): ...",
        "from datetime import datetime as when\nimport datetime\ndef f(): return datetime.datetime.now()",
        "from dataclasses import field\nclass C:\n    at: float = field(default_factory=time.time)",
        "def f(path): return path.stat().st_mtime",
        "import os\ndef f(path): return os.path.getmtime(path)",
        "def f(db): return db.execute('SELECT x WHERE t < CURRENT_TIMESTAMP')",
        "import uuid\ndef f(): return sorted(uuid.uuid1() for _ in 'ab')",
    ],
)
def test_a_use_is_found_however_it_is_written(code: str) -> None:
    assert uses_in(code)


def test_durations_are_no_uses() -> None:
    assert uses_in("import time\ndef f(): return time.monotonic() - time.perf_counter()") == []
