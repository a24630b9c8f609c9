"""What came of a group of files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from components.tfrecord_gen.reading.record_error import Fault
from components.tfrecord_gen.report import FileReport, FirstFault
from components.tfrecord_gen.writing.shard_writer import Part
from sluice.errors import MAX_EXAMPLES
from sluice.records.tfrecord_framing import FRAME_BYTES


@dataclass
class Taken:
    """What came of a group of files, or of all of them.

    Attributes:
        files: per file its report.
        parts: shards without final names.
        bytes: bytes of the files, decompressed, with the lost ones.
        bad_bytes: frames of the bad records, and lost bytes.
        faults: per kind their number.
        first_faults: the first five per kind.
    """

    files: list[FileReport] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    bytes: int = 0
    bad_bytes: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    first_faults: list[FirstFault] = field(default_factory=list)

    def note(self, fault: Fault) -> None:
        """Counts a fault."""
        self.faults[fault.kind] += 1
        data_bytes = len(fault.data or b"") + FRAME_BYTES
        self.bad_bytes += fault.lost_bytes or data_bytes
        if self.faults[fault.kind] <= MAX_EXAMPLES:
            self.first_faults.append(
                FirstFault(
                    fault.path, fault.number, fault.offset, fault.kind, fault.reason
                )
            )

    @classmethod
    def joined(cls, groups: Iterable[Taken]) -> Taken:
        """Returns what came of several groups, in order."""
        whole = cls()
        seen: Counter[str] = Counter()
        for group in groups:
            whole.files += group.files
            whole.parts += group.parts
            whole.bytes += group.bytes
            whole.bad_bytes += group.bad_bytes
            whole.faults += group.faults
            for fault in group.first_faults:
                seen[fault.kind] += 1
                if seen[fault.kind] <= MAX_EXAMPLES:
                    whole.first_faults.append(fault)
        return whole
