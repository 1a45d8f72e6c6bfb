"""What code tries that wants out of its sandbox: cells that print how far they got.

The tests run them as submissions, and `traceonce doctor --sandbox` on the machine that it is started on. They run in a sandbox alone: some would do harm where
nothing holds them.
"""

WRITE_EVERYWHERE = r"""
import os
written = []
for folder, names, files in os.walk("/"):
    names[:] = [name for name in names if name not in ("proc", "site-packages", "lib", "lib64", "python3")]
    try:
        with open(os.path.join(folder, "left-behind"), "w") as file:
            file.write("x")
        written.append(folder)
    except OSError:
        pass
print("written", written)
# As somebody's own files would still be written to, whoever they belong to, were a mount not read-only.
with open("/proc/self/mountinfo") as file:
    options = {line.split()[4]: line.split()[5].split(",") for line in file}  # the last mount at a path covers the others
print("writable", sorted(path for path in options if "ro" not in options[path]))
import jax, traceonce
for file in (traceonce.__file__, jax.__file__, os.__file__, os.path.dirname(os.__file__) + "/left-behind"):
    try:
        open(file, "a")
        print("OPENED", file)
    except OSError as error:
        print("refused", error.errno)
"""

NETWORK = r"""
import socket, errno
reached = []
for family in range(0, 46):
    for kind in (1, 2, 3, 5):
        try:
            made = socket.socket(family, kind, 0)
        except OSError:
            continue
        reached.append((family, kind))
        made.close()
print("families", sorted({family for family, _ in reached}))
for address in (b"\0abstract", "/run/docker.sock", "/var/run/dbus/system_bus_socket", "/tmp/.X11-unix/X0"):
    try:
        socket.socket(socket.AF_UNIX).connect(address)
        print("CONNECTED", address)
    except OSError:
        pass
try:
    socket.create_connection(("127.0.0.1", PORT), 1)
    print("CONNECTED")
except OSError as error:
    print("refused", error.errno)
"""

BREAK_OUT = r"""
import ctypes, os, errno
libc = ctypes.CDLL(None, use_errno=True)

def attempt(name, call, *arguments):
    result = call(*arguments)
    print(name, "DONE" if result >= 0 else errno.errorcode[ctypes.get_errno()])

for flag in (0x00020000, 0x10000000, 0x20000000, 0x40000000, 0x04000000, 0x08000000, 0x02000000):
    attempt(f"unshare {flag:x}", libc.unshare, flag)
    attempt(f"clone {flag:x}", libc.syscall, 56 if os.uname().machine == "x86_64" else 220, flag | 17, 0, 0, 0, 0)
attempt("mount", libc.mount, b"tmpfs", b"/scratch", b"tmpfs", 0, None)
attempt("remount", libc.mount, None, b"/", None, 32 | 4096, None)
attempt("umount", libc.umount2, b"/proc", 2)
attempt("chroot", libc.chroot, b"/scratch")
attempt("ptrace", libc.ptrace, 16, 1, 0, 0)
attempt("setuid", libc.setuid, 0)
attempt("setgroups", libc.setgroups, 0, None)
attempt("keyctl", libc.syscall, 250 if os.uname().machine == "x86_64" else 219, 0, -3, 0, 0)
attempt("bpf", libc.syscall, 321 if os.uname().machine == "x86_64" else 280, 0, 0, 0)
attempt("io_uring", libc.syscall, 425, 1, 0)
attempt("memfd", libc.memfd_create, b"x", 0)
attempt("shmget", libc.shmget, 0, 4096, 0o1600)
attempt("setns", libc.setns, os.open("/proc/self/ns/user", 0), 0)
attempt("personality", libc.personality, 0x0040000)
attempt("mknod", libc.mknod, b"/scratch/sda", 0o60600, os.makedev(8, 0))
for pid in (0, 1, -1):
    try:
        os.kill(pid, 0) if pid else None
        os.kill(1, 9)
    except OSError:
        pass
print("alive")
for path in ("/bin/sh", "/usr/bin/env", "/proc/self/exe"):
    try:
        os.execv(path, [path, "-c", "pass"])
    except OSError as error:
        print("exec", errno.errorcode[error.errno])
import resource
for which in (resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU):
    try:
        resource.setrlimit(which, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print("RAISED", which)
    except (OSError, ValueError):
        pass
"""

OUTLIVE = r"""
import os, time, threading, atexit
def linger():
    while True:
        time.sleep(0.05)
atexit.register(linger)
threading.Thread(target=linger, daemon=False).start()
ready, tell = os.pipe()
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            import ctypes
            ctypes.CDLL(None).prctl(15, b"OUTLIVER", 0, 0, 0)
            import signal
            for number in range(1, 64):
                try:
                    signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError):
                    pass
            os.write(tell, b".")
            linger()
        os._exit(0)
for _ in range(3):
    os.read(ready, 1)  # each of them has its name
print("started")
"""

SAME_USER = r"""
import errno, fcntl, os, resource, signal, socket

def attempt(name, call):
    try:
        call()
        print(name, "DONE")
    except OSError as error:
        print(name, errno.errorcode[error.errno])

attempt("read limits", lambda: resource.prlimit(VICTIM, resource.RLIMIT_CPU))
attempt("set limits", lambda: resource.prlimit(VICTIM, resource.RLIMIT_CORE, (0, 0)))
attempt("affinity", lambda: os.sched_setaffinity(VICTIM, {0}))
attempt("priority", lambda: os.setpriority(os.PRIO_PROCESS, VICTIM, 19))
attempt("scheduling", lambda: os.sched_setscheduler(VICTIM, os.SCHED_BATCH, os.sched_param(0)))
attempt("mode", lambda: os.chmod(SECRET, 0o777))
attempt("times", lambda: os.utime(SECRET))
attempt("attributes", lambda: os.setxattr(SECRET, "user.x", b"1"))
attempt("remove", lambda: os.unlink(SECRET))
attempt("rename", lambda: os.rename(SECRET, SECRET + "2"))
attempt("link", lambda: os.link(SECRET, os.path.dirname(SECRET) + "/link"))
attempt("make", lambda: os.mkdir(os.path.dirname(SECRET) + "/made"))
# A signal by way of the kernel: data that arrives is told to the owner of a socket, with a signal of one's choice.
one, other = socket.socketpair()
try:
    fcntl.fcntl(one.fileno(), fcntl.F_SETOWN, VICTIM)
    fcntl.fcntl(one.fileno(), 10, signal.SIGKILL)
    fcntl.fcntl(one.fileno(), fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
except OSError:
    pass
other.send(b"x")
print("through")
"""
