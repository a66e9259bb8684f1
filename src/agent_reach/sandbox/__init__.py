"""Apply a plan: processes, their rights, and the order of the steps.

Theory of operation
===================

Four processes take part in a run of tier ``full``::

    launcher    caller's rights: contract, providers, record; relays standard input and output
      supervisor  parent of the sandbox: answers its calls, holds the deadline, kills, cleans up
        init        pid 1 inside: builds the file system, then only reaps; non-dumpable, holds one pipe to write to
          worker      pid 2 inside: locks itself in, then executes the user's program

In tier ``reduced`` there is no init: the supervisor is the worker's parent and the reaper of its descendants.
Started by root, the supervisor becomes one unprivileged uid of a slot and the sandbox another (`slots`), and
only the launcher, which opens the sources of the mounts, keeps root.

Channels
--------
- *control*: launcher and supervisor, SOCK_SEQPACKET, one `wire.frames` frame a message. Its end of file tells
  either that the other is gone; the supervisor then kills the sandbox.
- *setup*: supervisor, init and worker, the same kind. A step that fails is reported as ``step, errno, detail``;
  the worker hands over the seccomp listener and the resolver's sockets. Close-on-exec: nothing of it is left
  when user code runs.
- *gate*: a pipe that only the supervisor writes to. Init waits in it until its ids are mapped and until the
  supervisor is known to be alive behind PR_SET_PDEATHSIG.
- *values*: a pipe from the launcher to the worker with the environment and staged files. Providers run while
  init builds the file system; neither init nor the supervisor ever reads a secret.
- *status*: a pipe on which init reports how the worker ended.

Order of the last steps in the worker, and why
----------------------------------------------
no_new_privs first, since an unprivileged filter needs it; capabilities, while prctl is still unfiltered;
resource limits; descriptors are closed; Landlock before seccomp, as its own calls would otherwise have to be
allowed in more detail; seccomp last, with a listener. Then one call of each class that must be refused is
made, for real: if any of them is let through, nothing runs.
"""
