"""Samples of records for the tests of what ``sluice init`` proposes."""

import pytest

from pipeline.scaffold.sample import read_sample
from sample_data.tf_example import encode
from sluice.tfrecords import tfrecord


@pytest.fixture
def table(tmp_path):
    """Samples records of one value per column: a function of the row, or None."""

    def table(count=200, **columns):
        records = []
        for row in range(count):
            values = {name: column(row) for name, column in columns.items()}
            records.append(
                encode(
                    {
                        name: value if isinstance(value, list) else [value]
                        for name, value in values.items()
                        if value not in (None, [])
                    }
                )
            )
        tfrecord.write(tmp_path / "records", records)
        return read_sample([tmp_path / "records"])

    return table
