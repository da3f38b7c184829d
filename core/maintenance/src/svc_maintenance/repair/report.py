"""What a repair did, as a value."""

from __future__ import annotations

from msgspec import Struct, field

from svc_maintenance.verification import Damage

__all__ = ["RepairReport"]


class RepairReport(Struct):
    """What a repair found and did.

    Attributes:
        restored_records: records that stand in the log again exactly as they were.
        fetched_objects: objects that were stored anew, since their records could not be restored in place.
        voided_records: damaged records and regions that became voids; what is needed of them, and is neither
            fetched nor elsewhere in the log, is lost.
        cleaned: bytes between records, marks and the file's own header that were put right.
        lost_commits: numbers of commits whose records are lost; their versions are there, but for ``lost``.
        extended_from: from where the log got an end that a copy had and the file had not: a sentence each.
        given_up_commits: what was lost at the end of the log: a sentence each.
        lost: what can't be read any more, each path with the versions that have it.
        is_complete: whether ``lost`` names all paths.
        replaced_roots: lost roots of HEAD or of the system tree, and what stands for them: a sentence each.
        given_up_directories: directories of the system tree that were lost, now or before, and are not there
            any more, so that what looks there finds nothing and does not fail.
        saved_to: names of the files beside the database that hold the bytes that were overwritten.
        state_saved_to: name of the directory that the state directory was moved to; None when it stayed.
        damaged: what is still damaged; empty unless something hindered the repair.
    """

    restored_records: int = 0
    fetched_objects: int = 0
    voided_records: int = 0
    cleaned: int = 0
    lost_commits: list[int] = field(default_factory=list)
    extended_from: list[str] = field(default_factory=list)
    given_up_commits: list[str] = field(default_factory=list)
    lost: list[Damage] = field(default_factory=list)
    is_complete: bool = True
    replaced_roots: list[str] = field(default_factory=list)
    given_up_directories: list[str] = field(default_factory=list)
    saved_to: list[str] = field(default_factory=list)
    state_saved_to: str | None = None
    damaged: list[Damage] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether anything had to be put right."""
        counts = (self.restored_records, self.fetched_objects, self.voided_records, self.cleaned)
        return any(counts) or bool(self.extended_from or self.given_up_commits or self.state_saved_to)

    @property
    def ok(self) -> bool:
        """Whether everything is there again."""
        return not (self.lost or self.lost_commits or self.given_up_commits or self.damaged)
