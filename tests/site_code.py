"""Code that is shown on purpose, as a search for leaks takes it: a search that missed some of it would miss a solution, too."""

from collections.abc import Iterable

from traceonce.bundle.leaks import Secret, code_lines


def as_secrets(sources: Iterable[str]) -> list[Secret]:
    """The cells of code that are long enough to be searched for, each as a secret of its own."""
    secrets = [Secret(f"cell {number}", code_lines(source)) for number, source in enumerate(sources)]
    return [secret for secret in secrets if any(secret.runs(share=0.5))]
