"""What a plan may vary about the filter. Cheap to import: the warm run path needs no more than this."""

from __future__ import annotations

from agent_reach._util.record import Record

METADATA_CHOICES = ("allow", "refuse", "notify")
TIERS = ("full", "reduced")


class FilterOptions(Record):
    """The variations of the policy; the defaults are those of tier ``full``.

    Args:
        tier: ``full`` or ``reduced``. Without namespaces of its own a run may not touch foreign processes
            by pid, see the host's network interfaces, or use UDP.
        notify_signals: ask the broker about every signal (``reduced`` with Landlock ABI below 6).
        notify_forks: ask the broker about every new process, so that it can refuse them while it kills.
        notify_socket: let the broker create internet sockets (pidfd_getfd is not available outside).
        notify_branches: ask the broker about clone(NEWUSER | NEWNS), which a session's branches need.
        no_memfd: memfd_create answers ENOSYS (a memory limit is declared and no memory cgroup holds it).
        metadata: what happens to chmod, chown, utime and setxattr, which Landlock does not cover.
        refuse_truncate: truncate by path is refused (Landlock ABI below 3).
        uid: the run's own user id inside; changing to it again is permitted, which posix_spawn and programs
            on their way down from set-id do. -1: no id is.
        gid: the same for the group.
    """

    tier: str = "full"
    notify_signals: bool = False
    notify_forks: bool = False
    notify_socket: bool = False
    notify_branches: bool = False
    no_memfd: bool = False
    metadata: str = "allow"
    refuse_truncate: bool = False
    uid: int = -1
    gid: int = -1

    def check(self) -> None:
        """Raise ValueError for a word that is not one of the choices."""
        if self.tier not in TIERS:
            raise ValueError(f"tier is one of {TIERS}, not {self.tier!r}")
        if self.metadata not in METADATA_CHOICES:
            raise ValueError(f"metadata is one of {METADATA_CHOICES}, not {self.metadata!r}")

    def key(self) -> str:
        """Return a short text that differs for every combination, fit for a file name."""
        flags = (
            self.notify_signals,
            self.notify_forks,
            self.notify_socket,
            self.notify_branches,
            self.no_memfd,
            self.refuse_truncate,
        )
        return f"{self.tier}-{self.metadata}-{''.join('01'[flag] for flag in flags)}-{self.uid}-{self.gid}"
