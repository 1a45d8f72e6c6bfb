"""The course, packed for where it is used: nbgrader, Gradescope, learners, Colab, a GPU machine without a network.

| module | what it does |
|---|---|
| `output` | files and folders that are there whole or not at all, and never in place of another's |
| `grader_part` | what a grader needs and a learner must not see: reference, hidden asserts, seed |
| `nbgrader_course`, `nbgrader_grading` | a course folder for nbgrader, and what nbgrader calls in place of running student code |
| `gradescope`, `gradescope_run` | the autograder archive, and what runs inside of it |
| `students`, `leaks` | the course without solutions and hidden asserts, and the search for any text of them |
| `gpu`, `gpu_machine/` | the checks for a GPU machine with its own JAX, and the script that runs there |
| `colab` | lessons with an install cell on top |

Nothing imports this package but the command line.
"""
