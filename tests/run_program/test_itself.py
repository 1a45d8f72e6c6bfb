"""A program under `traceonce run` is the program itself: compared with plain Python, script by script."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

import traceonce

REPORT = "\ntraceonce run: "


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    error: str

    @property
    def own_error(self) -> str:
        """What the program itself wrote to standard error."""
        return self.error.partition(REPORT)[0]

    @property
    def report(self) -> str:
        head, found, tail = self.error.partition(REPORT)
        assert found, f"no report in {head!r}"
        assert REPORT not in tail, "two reports"
        return found + tail


SOURCE = str(Path(traceonce.__file__).parents[1])


def environment(**variables: str) -> dict[str, str]:
    """The environment, with what these tests set, and the package under test on a path that they set."""
    if "PYTHONPATH" in variables:
        variables["PYTHONPATH"] = os.pathsep.join([variables["PYTHONPATH"], SOURCE])
    return {**{k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}, **variables}


def ended(command: list[str], folder: Path, given: str = "", **variables: str) -> Ended:
    ran = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        input=given,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Ended(ran.returncode, ran.stdout, ran.stderr)


def observed(command: list[str], folder: Path, given: str = "", **variables: str) -> Ended:
    return ended(["-m", "traceonce", "run", *command], folder, given, **variables)


def script(folder: Path, body: str, name: str = "program.py") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(body))
    return path


def assert_itself(command: list[str], folder: Path, given: str = "", **variables: str) -> Ended:
    """Run it plainly and observed; everything but the report must be the same. Returns the observed run."""
    plain, seen = ended(command, folder, given, **variables), observed(command, folder, given, **variables)
    assert (seen.code, seen.out, seen.own_error) == (plain.code, plain.out, plain.error)
    assert seen.report
    return seen


PROGRAMS = {
    "what_it_is": """
        import os, sys
        import __main__
        print(__name__, __file__, __spec__, __package__, __main__.__dict__ is globals(), sorted(globals()))
        print(sys.argv, sys.path, sys.orig_argv[1:], sys.flags, sys.warnoptions)
        print({k: v for k, v in os.environ.items() if "TRACEONCE" in k or k == "PYTHONPATH"})
        print("sitecustomize" in sys.modules, os.getcwd(), sys.stdin.read())
        """,
    "exit_code": "import sys; print('out'); sys.exit(3)",
    "exit_message": "import sys; sys.exit('a reason')",
    "exception": """
        def inner():
            raise ValueError("mine")
        try:
            inner()
        except ValueError as error:
            raise RuntimeError("after") from error
        """,
    "syntax_error": "def (:",
    "os_exit": "import os; print('out', flush=True); os._exit(5)",
    "abort": "import os; os.abort()",
    "own_hook": "import sys; sys.excepthook = lambda *about: print('hook', about[0].__name__); 1 / 0",
    "exit_handlers": """
        import atexit, threading, time
        atexit.register(print, "registered first")
        atexit.register(print, "registered second")
        threading.Thread(target=lambda: (time.sleep(0.3), print("a thread that outlives the main one"))).start()
        print("end of the script")
        """,
    "unflushed": "import sys; sys.stdout.write('no newline'); sys.stderr.write('nor here')",
    "closed_streams": "import sys; sys.stdout.close(); sys.stderr.close()",
    "pickled": """
        import pickle
        class Thing:
            def __init__(self, x): self.x = x
        again = pickle.loads(pickle.dumps(Thing(4)))
        print(again.x, type(again) is Thing, Thing.__module__, Thing.__qualname__)
        """,
    "children": """
        import os
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            print("it has no children")
        child = os.fork()
        if child == 0:
            raise SystemExit(4)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
    "subprocess": """
        import subprocess, sys
        code = "import os, sys; print(sorted(k for k in os.environ if 'TRACEONCE' in k), [type(f) for f in sys.meta_path], os.listdir('/proc/self/fd'))"
        print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout)
        """,
    "signals": """
        import signal
        print({name: signal.getsignal(name) for name in signal.Signals if name not in (signal.SIGKILL, signal.SIGSTOP)})
        print(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.set_wakeup_fd(-1))
        """,
    "closes_what_it_did_not_open": """
        import os
        os.closerange(3, 256)
        with open("mine.txt", "w") as file:
            for number in range(4, 256):
                os.dup2(file.fileno(), number)
            file.write("mine")
            file.flush()
            import jax
        print(open("mine.txt").read())
        """,
    "looks_for_jax_and_does_not_import_it": """
        import importlib.util, sys
        spec = importlib.util.find_spec("jax")
        print(spec.origin, type(spec.loader), "jax" in sys.modules)
        """,
}


@pytest.fixture
def old_jax(tmp_path: Path) -> Path:
    """A folder with a stand-in for a JAX that is too old to be observed: importing it takes no time."""
    body = '__version__ = "0.4.1"\n'
    return script(tmp_path / "old", body, "jax/__init__.py").parent.parent


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_script_is_itself(tmp_path, old_jax, name):
    script(tmp_path, PROGRAMS[name])
    assert_itself(["program.py", "one", "--two", "--", "-m"], tmp_path, "given\n", PYTHONPATH=str(old_jax))


def test_without_a_python_path_none_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.delenv("TRACEONCE_PROGRESS", raising=False)  # the person's own, where the whole suite is run
    script(tmp_path, PROGRAMS["what_it_is"])
    seen = assert_itself(["./program.py", "--help", "--html", "x"], tmp_path)
    assert "TRACEONCE" not in seen.out
    assert "'--help', '--html', 'x'" in seen.out


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_finds_the_main_module(tmp_path, method):
    script(
        tmp_path,
        f"""
        import multiprocessing
        class Thing:
            def __init__(self, x): self.x = x
        def double(thing): return Thing(2 * thing.x)
        if __name__ == "__main__":
            with multiprocessing.get_context("{method}").Pool(2) as pool:
                print([thing.x for thing in pool.map(double, map(Thing, range(5)))])
        """,
    )
    assert_itself(["program.py"], tmp_path)


def test_a_module_in_a_package_is_itself(tmp_path):
    script(tmp_path, "print('the package is imported')", "pack/__init__.py")
    script(tmp_path, "value = 4", "pack/inner.py")
    body = "import sys\nfrom .inner import value\nprint(__name__, __package__, __spec__.name, sys.argv, sys.path[0], value)"
    script(tmp_path, body, "pack/__main__.py")
    script(tmp_path, body.replace("__spec__.name", "__file__"), "pack/tool.py")
    for command in (["-m", "pack", "--json", "x", "-m"], ["-m", "pack.tool", "--help"]):
        seen = assert_itself(command, tmp_path)
        assert seen.out.count("the package is imported") == 1


def test_a_folder_and_standard_input_are_run_as_python_runs_them(tmp_path):
    script(tmp_path, "import sys; print(__name__, sys.path[0])", "tool/__main__.py")
    assert_itself(["tool"], tmp_path)
    assert_itself(["-", "an argument"], tmp_path, "import sys\nprint(sys.argv)\n")


def test_the_machines_own_sitecustomize_gets_its_turn(tmp_path):
    script(tmp_path, "import sys; sys.of_the_site = __name__, __file__", "site/sitecustomize.py")
    script(tmp_path, "import sys; print(sys.of_the_site, sys.modules['sitecustomize'].__spec__.origin)")
    assert_itself(["program.py"], tmp_path, PYTHONPATH=str(tmp_path / "site"))


def test_a_program_that_cannot_be_observed_runs_and_the_report_says_why(tmp_path, old_jax):
    script(tmp_path, "import jax; print(jax.__version__, jax.__loader__.__dict__.keys())")
    seen = assert_itself(["program.py"], tmp_path, PYTHONPATH=str(old_jax))
    assert "Not observed: JAX 0.4.1 cannot be observed" in seen.report
    assert "traceonce doctor" in seen.report


def test_a_program_without_jax_is_told_apart_from_one_that_compiled_nothing(tmp_path):
    script(tmp_path, "print(1)")
    assert "did not import JAX" in observed(["program.py"], tmp_path).report
    script(tmp_path, "import jax")
    assert "imported JAX and compiled nothing" in observed(["program.py"], tmp_path).report


# -- signals


WAITING = """
    import signal, sys, time
    {before}
    print("ready", flush=True)
    time.sleep(100)
    """


def killed(command: list[str], folder: Path, number: signal.Signals) -> Ended:
    # A shell gives its background jobs an ignored SIGINT, and children inherit that; a handler they do not inherit.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        child = subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert child.stdout is not None
    first = child.stdout.readline()
    child.send_signal(number)
    out, error = child.communicate(timeout=60)
    return Ended(child.returncode, first + out, error)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGHUP, signal.SIGSEGV])
def test_a_signal_ends_the_program_as_it_would_and_the_report_comes(tmp_path, number):
    script(tmp_path, WAITING.format(before=""))
    plain = killed(["program.py"], tmp_path, number)
    seen = killed(["-m", "traceonce", "run", "program.py"], tmp_path, number)
    assert (seen.code, seen.out) == (plain.code, plain.out)
    # Which line the signal met is chance: the sleep, or still the print before it. So only how the traceback begins and ends counts.
    assert seen.own_error.splitlines()[:1] == plain.error.splitlines()[:1]
    assert seen.own_error.splitlines()[-1:] == plain.error.splitlines()[-1:]
    assert plain.code == -number
    complete = number == signal.SIGINT
    assert ("without its exit handlers" in seen.report) is not complete


def test_a_programs_own_handler_decides(tmp_path):
    script(tmp_path, WAITING.format(before="signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))"))
    seen = killed(["-m", "traceonce", "run", "program.py"], tmp_path, signal.SIGTERM)
    assert seen.code == 7
    assert "without its exit handlers" not in seen.report


def test_a_signal_to_the_whole_group_reaches_the_program_once(tmp_path):
    body = WAITING.format(before="heard = []; signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))")
    script(tmp_path, body.replace("time.sleep(100)", "time.sleep(1); time.sleep(1); print(len(heard))"))
    child = subprocess.Popen(
        [sys.executable, "-m", "traceonce", "run", "program.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stdout is not None
    child.stdout.readline()
    os.killpg(child.pid, signal.SIGUSR1)
    out, error = child.communicate(timeout=60)
    assert (child.returncode, out) == (0, "1\n")
    assert REPORT in error


def test_the_command_becomes_the_program_with_its_process_and_leaves_no_child_behind(tmp_path):
    script(tmp_path, "import os; print(os.getpid(), os.getppid(), os.getsid(0) == os.getpid())")
    child = subprocess.Popen(
        [sys.executable, "-m", "traceonce", "run", "program.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    out, _ = child.communicate(timeout=60)
    assert out.split() == [str(child.pid), str(os.getpid()), "False"]


def test_a_reader_of_the_output_does_not_wait_for_the_witness(tmp_path):
    script(tmp_path, "import os, time; os.close(1); time.sleep(3); open('slept', 'w').close()")
    child = subprocess.Popen(
        [sys.executable, "-m", "traceonce", "run", "program.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdout is not None
    child.stdout.read()
    assert not (tmp_path / "slept").exists(), "the output ended before the program"
    child.wait(timeout=60)
    assert (tmp_path / "slept").exists()


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_closed_standard_stream_stays_closed(tmp_path, closed):
    script(
        tmp_path,
        """
        import os, sys
        def is_open(number):
            try:
                os.fstat(number)
            except OSError:
                return False
            return True
        with open("found.txt", "w") as file:
            print([is_open(number) for number in range(3)], [s is None for s in (sys.stdin, sys.stdout, sys.stderr)], file=file)
        """,
    )
    found = []
    for start in ([], ["-m", "traceonce", "run"]):
        command = " ".join([sys.executable, *start, "program.py"])
        subprocess.run(f"{command} {closed}>&-", shell=True, cwd=tmp_path, check=True, capture_output=True)
        found.append((tmp_path / "found.txt").read_text())
    assert found[0] == found[1]


# -- wrong usage


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.py"], "no file missing.py"),
        (["-m", "no_such_module_here"], "no module no_such_module_here"),
        (["-m", "pack.missing"], "no module pack.missing"),
        (["-m", "not/a/module"], "no module not/a/module"),
        (["--html", "nowhere/report.html", "program.py"], "cannot be written to nowhere/report.html"),
        (["--json", ".", "program.py"], "cannot be written to ."),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_2(tmp_path, arguments, words):
    script(tmp_path, "print('must not run')")
    script(tmp_path, "print('must not be imported')", "pack/__init__.py")
    seen = observed(arguments, tmp_path)
    assert (seen.code, seen.out) == (2, "")
    assert words in seen.error
    assert len(seen.error.strip().splitlines()) == 1


def test_no_program_is_wrong_usage(tmp_path):
    assert observed([], tmp_path).code == 2


def test_a_report_file_that_becomes_unwritable_costs_the_file_and_not_the_program(tmp_path):
    script(tmp_path, "import os, shutil; shutil.rmtree('reports'); print('done')")
    (tmp_path / "reports").mkdir()
    seen = observed(["--json", "reports/r.json", "program.py"], tmp_path)
    assert (seen.code, seen.out) == (0, "done\n")
    assert "could not be written" in seen.report


def test_reports_go_where_the_command_was_given_even_if_the_program_moves(tmp_path):
    script(tmp_path, "import os; os.chdir('/')")
    began = time.time()
    seen = observed(["--json", "r.json", "program.py"], tmp_path)
    document = json.loads((tmp_path / "r.json").read_text())
    assert (document["complete"], document["jax"], document["functions"]) == (True, None, [])
    assert document["command"] == ["program.py"]
    assert 0 <= document["seconds"] <= time.time() - began
    assert document["memory"]["peak_bytes"] > 2**20
    assert list(tmp_path.glob(".*")) == []
    assert "wrote" in seen.report
