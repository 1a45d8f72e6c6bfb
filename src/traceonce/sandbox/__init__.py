"""Child processes under limits.

- `limits`: what a sandbox may use.
- `namespaces`, `root`, `seccomp`, `linux`: the namespaces tier, from the inside.
- `handle`, `watch`: a running sandbox from the outside, and its memory.
- `capped`: a child under a memory cap and a clock, for lessons that kill a process on purpose.
"""
