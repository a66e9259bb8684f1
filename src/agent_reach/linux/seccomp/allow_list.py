"""Which system calls a sandboxed program may make, by name. Data only.

A name that a machine does not have is left out there. Calls that are allowed for some arguments only, or
that the broker answers, are listed here too; `rules` says how.
"""

# Seen under strace on CPython's standard library, subprocess, multiprocessing, asyncio, TLS, numpy, pandas,
# matplotlib, scikit-learn, polars, duckdb, pyarrow, uvloop, ipykernel, pytest and pip.
MEASURED = frozenset(
    """
    accept4 access arch_prctl bind brk chdir chmod clock_nanosleep clone close close_range connect dup
    dup2 epoll_create1 epoll_ctl epoll_pwait epoll_wait eventfd2 execve exit exit_group fadvise64 fchown
    fcntl fdatasync fstat fstatfs ftruncate futex getcwd getdents64 getegid geteuid getgid getpeername
    getpgid getpid getppid getrandom getsockname getsockopt gettid getuid ioctl kill link listen lseek
    madvise mkdir mmap mprotect mremap msync munmap newfstatat open openat pipe2 poll prctl pread64
    prlimit64 pwrite64 read readlink recvfrom recvmsg rename restart_syscall rmdir rseq rt_sigaction
    rt_sigprocmask rt_sigreturn sched_getaffinity sched_getparam sched_getscheduler sched_setscheduler
    sched_yield sendfile sendmmsg sendto set_robust_list set_tid_address setsid setsockopt shutdown
    sigaltstack socket socketpair stat statfs statx symlink sysinfo umask uname unlink unlinkat vfork
    wait4 write
    """.split()  # noqa: SIM905 - a paragraph of names is easier to read and to compare
)

# Relatives of those that other versions of the same libraries, or the other architecture, call instead.
EXPECTED = frozenset(
    """
    accept alarm capget chown clock_getres clock_gettime copy_file_range creat dup3 epoll_create
    epoll_pwait2 eventfd execveat faccessat faccessat2 fallocate fchdir fchmod fchmodat fchmodat2
    fchownat fgetxattr flistxattr flock fork fremovexattr fsetxattr fsync futex_waitv get_robust_list
    getcpu getgroups getitimer getpgrp getpriority getresgid getresuid getrlimit getrusage getsid
    gettimeofday getxattr inotify_add_watch inotify_init inotify_init1 inotify_rm_watch ioprio_get
    ioprio_set landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown lgetxattr lremovexattr linkat
    listxattr llistxattr lsetxattr lstat map_shadow_stack membarrier memfd_create mincore mkdirat mknod
    mknodat mlock mlock2 munlock nanosleep pause pidfd_open pidfd_send_signal pipe pkey_alloc pkey_free
    pkey_mprotect ppoll preadv preadv2 pselect6 pwritev pwritev2 readlinkat readv recvmmsg removexattr
    renameat renameat2 rt_sigpending rt_sigqueueinfo rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo
    sched_get_priority_max sched_get_priority_min sched_getattr sched_rr_get_interval sched_setaffinity
    sched_setparam seccomp select sendmsg set_thread_area setitimer setpgid setpriority setrlimit
    setxattr signalfd signalfd4 symlinkat sync_file_range tgkill time timer_create timer_delete
    timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times
    tkill truncate utime utimensat utimes waitid writev
    """.split()  # noqa: SIM905 - a paragraph of names is easier to read and to compare
)

# Nothing here can be had; the caller is told that the kernel does not know the call, because libraries that
# find it missing fall back to an older one, and libraries that find it forbidden give up.
ABSENT = frozenset(
    """
    add_key cachestat clone3 file_getattr file_setattr futex_requeue futex_wait futex_wake getxattrat
    io_uring_enter io_uring_register io_uring_setup keyctl listmount listxattrat lsm_get_self_attr
    lsm_list_modules lsm_set_self_attr memfd_secret mseal openat2 removexattrat request_key setxattrat
    splice statmount tee vmsplice
    """.split()  # noqa: SIM905 - a paragraph of names is easier to read and to compare
)
