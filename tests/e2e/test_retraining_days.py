"""Six days of the retraining benchmark, with what must hold of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import retraining
from benchmarks.taxi_days import Days, Delivery

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

# On day 4 the bad day 3 and the incomplete day 1 are delivered again; day 4 is late.
SIX: Days = {
    1: ("incomplete", (Delivery(1, state="part"),)),
    2: ("no data", ()),
    3: ("bad values", (Delivery(3, state="values"),)),
    4: ("delivered again", (Delivery(1, 2), Delivery(3, 2))),
    5: ("sudden drift", (Delivery(5, like=25),)),
    6: ("day 4 comes", (Delivery(4), Delivery(6))),
}


@pytest.mark.usefixtures("server")
def test_six_days(tmp_path: Path) -> None:
    retraining.prepare(tmp_path)
    played = [*retraining.play(tmp_path, SIX, 6)]
    records = retraining.played(tmp_path)
    became = {day: retraining.outcome(record) for day, record in records.items()}
    assert became == {
        1: "pushed",
        2: "up to date",
        3: "blocked (data gate)",
        4: "skipped",
        5: "pushed",
        6: "skipped",
    }
    assert retraining.check(tmp_path, SIX, records) == []
    (row, _) = records[5].gate_rows("retrain")
    assert row.why == "new spans: 3, 5; delivered again: 1"
    (row, _) = records[6].gate_rows("retrain")
    assert row.why == "new spans: 4, 6"
    assert "payment_type" in retraining.why(records[3])

    # What has been played is not played again, and what is wrong is found.
    assert len(played) == 6 and [*retraining.play(tmp_path, SIX, 6)] == []
    bad = {**SIX, 5: ("bad", (Delivery(5, state="cut"),))}
    (said,) = retraining.check(tmp_path, bad, records)
    assert said == "day 5 was trained on bad data: {(5, 1)}"
