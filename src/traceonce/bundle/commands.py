"""``traceonce bundle``: the course, packed for where it is used."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True, help="Pack the course: for nbgrader, Gradescope, learners, Colab, or a GPU machine."
)

_Force = Annotated[bool, typer.Option("--force", help="Replace what is there already.")]
_SeedFile = Annotated[
    Path | None, typer.Option(help="File with the secret seed of the random inputs; a new one is made without.")
]
_Isolation = Annotated[
    str,
    typer.Option(
        help="namespaces; bubblewrap where only that may make them; or landlock: weaker, for machines that forbid them; see docs/grading.md."
    ),
]


@app.command()
def nbgrader(
    out: Annotated[Path, typer.Option(help="The course folder to make.")],
    lab: Annotated[list[str] | None, typer.Option(help="A lab; may be given more than once. All by default.")] = None,
    seed_file: _SeedFile = None,
    isolation: _Isolation = "namespaces",
    force: Annotated[
        bool, typer.Option("--force", help="Bring a folder up to date. Gradebook, submissions and seed stay.")
    ] = False,
) -> None:
    """Make a course folder for nbgrader: points come from hidden asserts, run in the sandbox."""
    from traceonce.bundle.nbgrader_course import bundle_nbgrader

    labs = bundle_nbgrader(labs=lab or [], out=out, seed_file=seed_file, isolation=isolation, force=force)
    print(
        f"Made {out} with {', '.join(labs)}: its README.md says what to do next. Keep {out / 'traceonce'} from students."
    )


@app.command()
def gradescope(
    lab: Annotated[str, typer.Option(help="The lab.")],
    out: Annotated[Path, typer.Option(help="The archive to make, such as lab01.zip.")],
    seed_file: _SeedFile = None,
    time_limit: Annotated[float, typer.Option(help="Seconds a submission may take in total.")] = 60.0,
    memory_limit: Annotated[int, typer.Option(help="MB of memory that student code may use.")] = 512,
    isolation: _Isolation = "namespaces",
    force: _Force = False,
) -> None:
    """Make the autograder archive of one lab for Gradescope."""
    from traceonce.bundle.gradescope import bundle_gradescope

    made = bundle_gradescope(
        lab=lab,
        out=out,
        seed_file=seed_file,
        time_limit=time_limit,
        memory_limit=memory_limit,
        isolation=isolation,
        force=force,
    )
    print(
        f"Made {out}: {made.points:g} points, for a container of {made.container_mb} MB or more. It holds hidden asserts."
    )


@app.command()
def students(
    out: Annotated[Path, typer.Option(help="The archive to make, such as course.zip.")],
    force: _Force = False,
) -> None:
    """Make an archive of the course for learners: no solutions, no hidden asserts, no history."""
    from traceonce.bundle.students import bundle_students

    files = bundle_students(out=out, force=force)
    print(f"Made {out} with {files} files; no text of a solution or of a hidden assert is in it.")


@app.command()
def gpu(
    out: Annotated[Path, typer.Option(help="The archive to make, such as gpu.zip.")],
    python: Annotated[
        list[str] | None,
        typer.Option(help="A Python of the GPU machine, as 3.12; may be given more than once. All by default."),
    ] = None,
    machine: Annotated[str, typer.Option(help="Its processor: x86_64 or aarch64.")] = "x86_64",
    force: _Force = False,
) -> None:
    """Make an archive that checks the course on a GPU machine without a network that already has JAX for CUDA."""
    from traceonce.bundle.gpu import PYTHONS, bundle_gpu

    made = bundle_gpu(out=out, pythons=python or PYTHONS, machine=machine, force=force)
    print(
        f"Made {out}: {made.files} files of the project and {made.wheels} wheels, for Python {', '.join(made.pythons)} on {machine}. "
        "Its README.md says how to run it. It holds solutions and hidden asserts."
    )


@app.command()
def colab(
    out: Annotated[Path, typer.Option(help="The folder to make.")],
    package: Annotated[
        str | None, typer.Option(help="What pip is to install: a requirement, or the address of a wheel.")
    ] = None,
    force: _Force = False,
) -> None:
    """Make the lessons and labs for Colab: each with one cell on top that installs the package."""
    from traceonce.bundle.colab import bundle_colab

    names = bundle_colab(out=out, package=package, force=force)
    print(f"Made {out} with {len(names)} notebooks: its README.md says where they and the package go.")
