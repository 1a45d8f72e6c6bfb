"""The command line: thin, stable, and quick to start (each command imports what it needs)."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from traceonce.bundle.commands import app as bundle
from traceonce.errors import TraceOnceError, UsageError

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
author = typer.Typer(no_args_is_help=True, help="For the people who write the course.")
app.add_typer(author, name="author")
app.add_typer(bundle, name="bundle")


@app.command()
def learn(
    desk: Annotated[Path | None, typer.Option(help="The learner's folder; work/ in the checkout by default.")] = None,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open a browser.")] = True,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Port to serve on; 0 takes any free one. By default the first free one from 8888."
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all, as in a container.")] = "127.0.0.1",
    authoring: Annotated[bool, typer.Option("--author", help="Open course/ itself, .py files as notebooks.")] = False,
) -> None:
    """Make or refresh the learner's desk and open JupyterLab on the course index."""
    from traceonce.desk import learn as run

    raise typer.Exit(run(desk=desk, open_browser=open_browser, port=port, host=host, authoring=authoring))


@app.command()
def grade(
    paths: Annotated[list[Path], typer.Argument(help="Notebooks, or folders of them.")],
    out: Annotated[Path | None, typer.Option(help="Folder for records and reports.")] = None,
    lab: Annotated[str | None, typer.Option(help="The lab, where the notebook's name does not say.")] = None,
    seed_file: Annotated[Path | None, typer.Option(help="File that holds the secret seed.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Submissions graded at a time, on this machine.")] = 1,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Grade on the workers of this Dask scheduler (tcp:// or tls://)."),
    ] = None,
    tls_ca_file: Annotated[Path | None, typer.Option(help="The cluster's certificate authority.")] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate to show to the cluster.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="The key of that certificate.")] = None,
    formats: Annotated[
        str, typer.Option("--format", help="Any of gradescope,junit,csv,feedback,summary.")
    ] = "gradescope,junit,csv,feedback,summary",
    time_limit: Annotated[float, typer.Option(help="Seconds a submission may take in total.")] = 60.0,
    memory_limit: Annotated[int, typer.Option(help="MB of memory a submission may use.")] = 2048,
    isolation: Annotated[
        str,
        typer.Option(
            help="namespaces; bubblewrap where only that may make them; or landlock: weaker, for machines that forbid them; see docs/grading.md."
        ),
    ] = "namespaces",
    trusted: Annotated[
        bool, typer.Option("--trusted", help="Your own work: visible asserts alone, no sandbox, no grade.")
    ] = False,
) -> None:
    """Grade notebooks with hidden asserts, each in a sandbox of its own."""
    if trusted:
        from traceonce.grade.trusted import check_visible, told

        results = check_visible(paths, lab=lab, seconds=time_limit)
        print("\n".join(told(results)))
        for result in results:
            if result.cells and (len(results) == 1 or _is_own(result.file)):
                passed = sum(not why for why in result.cells.values())
                _note_lab(result.lab, passed, len(result.cells), hidden=False)
        raise typer.Exit(0 if all(result.passed for result in results) else 1)
    if out is None:
        raise UsageError(
            "Say where records and reports go: --out grades/ (or --trusted for your own work, which has none)."
        )
    from traceonce.grade import grade_paths
    from traceonce.grade.batch import find_notebooks

    cluster = None
    if scheduler is not None:
        from traceonce.grade.cluster_address import Cluster

        cluster = Cluster(scheduler, tls_ca_file, tls_cert, tls_key)
        cluster.check()
    elif tls_ca_file or tls_cert or tls_key:
        raise UsageError("TLS files are for a cluster: name its --scheduler.")
    notebooks = list(find_notebooks(paths))
    records = grade_paths(
        paths,
        out=out,
        lab=lab,
        seed_file=seed_file,
        workers=workers,
        formats=tuple(filter(None, formats.split(","))),
        time_limit=time_limit,
        memory_limit=memory_limit,
        cluster=cluster,
        tier=isolation,
    )
    for (notebook, _), record in zip(notebooks, records, strict=False):
        if record.lab and record.max_score and _is_own(notebook):
            _note_lab(record.lab, record.score, record.max_score, hidden=True)


def _is_own(notebook: Path) -> bool:
    """Whether a notebook lies on a desk: then whoever grades it has done it, and their progress shows it."""
    from traceonce.desk.copies import STATE

    return any((folder / STATE).is_dir() for folder in notebook.resolve().parents)


def _note_lab(lab: str, points: float, of: float, *, hidden: bool) -> None:
    from traceonce.show.course_map import note_lab

    if said := note_lab(lab, points, of, hidden=hidden):
        print(said, file=sys.stderr)


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help="Instead, start the grader's sandbox and try every way out of it.")
    ] = False,
    isolation: Annotated[
        str, typer.Option(help="With --sandbox: the isolation to try: namespaces, bubblewrap or landlock.")
    ] = "namespaces",
) -> None:
    """Look at this machine: versions, devices, memory caps, caches; say what to do. Exit 1 where something fails."""
    if sandbox:
        from traceonce.doctor.findings import as_json as in_json
        from traceonce.doctor.findings import as_text, exit_code
        from traceonce.grade.selftest import examine_sandbox

        findings = examine_sandbox(isolation)
        print(in_json(findings) if as_json else as_text(findings))
        raise typer.Exit(exit_code(findings))
    from traceonce.doctor import doctor as run

    raise typer.Exit(run(as_json_document=as_json))


@app.command()
def progress(
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
    forget: Annotated[
        str | None,
        typer.Option(
            metavar="LESSON",
            help='Predict a lesson anew: "01", "all", or "inventory" for its answers. The old file is kept.',
        ),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write your answers to the inventory for a teacher, without a name."),
    ] = None,
    class_folder: Annotated[
        Path | None, typer.Option("--class", metavar="FOLDER", help="For a teacher: such files of a class, together.")
    ] = None,
) -> None:
    """Show what you predicted in the lessons, what was measured, and the next step. Exit 1 where the record cannot be read."""
    if sum(option is not None for option in (forget, export, class_folder)) > 1:
        raise UsageError("Give one of --forget, --export and --class.")
    if class_folder is not None:
        _show_class(class_folder, as_json=as_json)
        return
    from traceonce.show import progress as read

    if export is not None:
        from traceonce.inventory.export import export as write

        found = read()
        if found.trouble:
            raise TraceOnceError(found.trouble)
        print(f"{write(found.inventory, export)} answers are in {export}. Nothing in it names you or this machine.")
        return
    if forget is not None:
        from traceonce.show.ledger import forget as take_out
        from traceonce.show.ledger import progress_path

        number, before = take_out(progress_path(), forget)
        print(
            f"{number} {'answers' if forget == 'inventory' else 'predictions'} forgotten"
            + (f"; the file as it was is {before}." if before else ".")
        )
        raise typer.Exit(0)

    found = read()
    if as_json:
        import json

        print(json.dumps(found.as_json(), indent=2, ensure_ascii=False))
    else:
        print(found)
    raise typer.Exit(1 if found.trouble else 0)


def _show_class(folder: Path, *, as_json: bool) -> None:
    from traceonce.inventory.export import summarise

    summary = summarise(folder)
    if as_json:
        import json

        print(json.dumps(summary.as_json(), indent=2, ensure_ascii=False))
    else:
        print(summary)


@app.command(context_settings={"allow_interspersed_args": False})
def run(
    program: Annotated[list[str], typer.Argument(metavar="SCRIPT|MODULE [ARGS]...", help="What follows `python`.")],
    as_module: Annotated[bool, typer.Option("-m", help="Run a module, as `python -m` does.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write a report to read in a browser.")] = None,
    json: Annotated[Path | None, typer.Option(help="Also write a machine-readable report.")] = None,
) -> None:
    """Run any Python program, unmodified, and report at its end what JAX compiled, why again, and how much memory."""
    if sys.platform == "win32":
        raise TraceOnceError("`traceonce run` needs Linux or macOS: here use `with watch() as seen:` in the program.")
    from traceonce.run import run as become

    become(program, as_module=as_module, html=html, json_file=json)


@author.command()
def build(
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit 1 on a difference.")] = False,
) -> None:
    """Make labs from solutions and bring every pair into sync."""
    from traceonce.author import build as run

    raise typer.Exit(run(check=check))


@author.command()
def claims(
    check: Annotated[bool, typer.Option("--check", help="Exit 1 where a claim has no executed cell.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """List the claims of each lesson and the cells that show them."""
    from traceonce.author import claims as run

    raise typer.Exit(run(check=check, as_json=as_json))


@author.command()
def changed(
    notebooks: Annotated[
        list[str] | None, typer.Argument(metavar="[NOTEBOOK]...", help="Such as 05, lab05, or a path; all by default.")
    ] = None,
    summary: Annotated[
        Path | None, typer.Option(help="Append the same to this file as Markdown, as for $GITHUB_STEP_SUMMARY.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Run the notebooks on this environment's JAX and say which printed output changed. Exit 1 where one did."""
    from traceonce.author import changed as run

    raise typer.Exit(run(notebooks=notebooks or [], summary=summary, as_json=as_json))


@author.command()
def graders(
    lab: Annotated[str | None, typer.Option(help="One lab; all of them by default.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds for the reference and the alternatives.")] = 3,
    first: Annotated[int, typer.Option("--first-seed", min=0, help="The first of the seeds.")] = 0,
    write: Annotated[Path | None, typer.Option(help="Only write the submissions as notebooks to this folder.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Prove the graders: every submission against every hidden assert."""
    from traceonce.author import graders as run

    raise typer.Exit(run(lab=lab, seeds=seeds, first=first, write=write, as_json=as_json))


def main() -> None:
    """Run a command; a `TraceOnceError` becomes its sentence and its exit code."""
    try:
        app()
    except TraceOnceError as error:
        print(f"traceonce: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
