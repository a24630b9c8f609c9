"""Exports of a table, by day, become a pushed model and its predictions."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from sluice.project import own_root

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

RULE = "paid >= price or plan == 'trial'"


def day(seed: int) -> pa.Table:
    """Returns 500 customers; a tenth of them are trials, which pay nothing."""
    chance = random.Random(seed)
    plans = [chance.choice(["basic", "gold", "trial"]) for _ in range(500)]
    prices = [round(chance.uniform(5, 50), 2) for _ in plans]
    usage = [chance.gauss(0, 1) for _ in plans]
    return pa.table(
        {
            "plan": pa.array(plans).dictionary_encode(),
            "price": prices,
            "paid": [
                0.0 if x == "trial" else y for x, y in zip(plans, prices, strict=True)
            ],
            "usage": [x if chance.random() < 0.9 else None for x in usage],
            "visits": pa.array([chance.randrange(5) for _ in plans], pa.int16()),
            "churned": [x < 0 for x in usage],
        }
    )


class Project:
    """A project of its own, and the program."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def sluice(self, *words: str, code: int = 0) -> Any:
        return json.loads(self.said(*words, "--json", code=code))

    def said(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "runners.cli.main", *words],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(own_root()), "SLUICE_WORKSPACE": ""},
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stderr
        return done.stdout


def test_exports_become_a_model_that_answers(tmp_path):
    project = Project(tmp_path)
    for number, write in enumerate((parquet.write_table, csv.write_csv), 1):
        folder = tmp_path / "exports" / f"2026-11-0{number}"
        folder.mkdir(parents=True)
        table = day(number)
        if write is csv.write_csv:
            # As pandas writes it: a column of whole numbers with a missing one.
            visits = pa.array([1.0, None, *[2.0] * 498])
            plain = table.column("plan").cast(pa.string())
            table = table.set_column(4, "visits", visits)
            table = table.set_column(0, "plan", plain)
            table = table.set_column(5, "churned", table["churned"].cast(pa.int8()))
        suffix = "csv" if write is csv.write_csv else "parquet"
        write(table, folder / f"customers.{suffix}")

    proposed = project.sluice(
        "init", "c", "--examples", "exports", "--label", "churned"
    )
    assert proposed["files"] == "{YYYY}-{MM}-{DD}/*"
    rules = ["--set", f'validate.expect=["{RULE}"]', "--set", "examples.where=visits<4"]
    done = project.sluice("run", "c", *rules)
    assert [push["state"] for push in done["pushes"]] == ["pushed"]
    (gate,) = (gate for gate in done["gates"] if gate["gate"] == "data")
    found = {row["slice"]: row for row in gate["rows"] if row["check"] == RULE}
    assert {*found} == {"train", "eval", "test"}
    assert all(row["passed"] for row in found.values())

    new = day(3).drop(["churned"])
    new = new.set_column(0, "plan", new["plan"].cast(pa.string()))
    csv.write_csv(new, tmp_path / "new.csv")
    answers = project.said("predict", "c", "new.csv", "--limit", "3").splitlines()
    assert all("probabilities" in json.loads(answer) for answer in answers)
    assert len(answers) == 3

    path = tmp_path / "exports" / "2026-11-02" / "customers.csv"
    path.write_text(path.read_text() + '"gold",50,10,0.5,1,0\n')
    failed = project.sluice("run", "c", *rules, code=3)
    (gate,) = (gate for gate in failed["gates"] if gate["gate"] == "data")
    (row,) = (row for row in gate["rows"] if not row["passed"])
    assert row["check"] == RULE and row["examples"] == [f"{path}, record 501"]


def test_the_tutorial_leads_from_parquet_to_a_model_of_keras_3(tmp_path):
    """By the blocks of its pages, and only by them."""
    text = (own_root() / "docs" / "tutorial.md").read_text()
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)
    data = next(block for kind, block in blocks if "load_breast_cancer" in block)
    code = next(block for kind, block in blocks if kind == "python")
    config = next(block for kind, block in blocks if "model: my_models" in block)
    commands = next(block for kind, block in blocks if "to_parquet" in block)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for script, folder in ((data, tmp_path), (commands, tmp_path / "tumors")):
        subprocess.run(
            ["bash", "-euc", script],
            cwd=folder,
            env={**os.environ, "PATH": path, "SLUICE_WORKSPACE": ""},
            check=True,
        )
    project = Project(tmp_path / "tumors")
    (project.root / "my_models.py").write_text(code)
    written = project.root / "configs" / "biopsies.yaml"
    before = written.read_text()
    written.write_text(re.sub(r"^model: dense.*\n", config, before, flags=re.M))
    assert written.read_text() != before

    assert project.sluice("run", "biopsies")["exit_code"] == 0
    (version,) = (project.root / "workspace/biopsies/serving").glob("[0-9]*")
    assert version.name == "1"
    said = project.said("predict", "biopsies", "data/tumors.parquet", "--limit", "5")
    answers = [json.loads(line) for line in said.splitlines()]
    assert [answer["label"] for answer in answers] == ["malignant"] * 5, answers
