#!/bin/sh
# Runs once, as root, when Gradescope builds the image: makes the environment that run_autograder uses, and grades the
# reference in it. Where the environment is there already nothing is fetched.
#
#   TRACEONCE_AUTOGRADER   the folder that is /autograder at Gradescope
#   TRACEONCE_PYTHON       a Python that has everything already
set -eu
home=${TRACEONCE_AUTOGRADER:-/autograder}
python=${TRACEONCE_PYTHON:-$home/traceonce/bin/python}
cd "$home/source"

# Nobody but the grader reads the hidden asserts and the seed.
chmod 700 "$home/source"

if ! "$python" -P -s -c 'import jax, pytest, traceonce.bundle.gradescope_run' 2>/dev/null; then
    # uv installs the list by its hashes, and fetches a Python where the image has none of at least 3.12.
    if ! python3 -m pip --version >/dev/null 2>&1; then
        apt-get install -y python3 python3-pip
    fi
    python3 -m pip install --quiet --require-hashes --only-binary :all: --no-deps --target "$home/uv" -r bootstrap.txt
    uv=$home/uv/bin/uv
    UV_PYTHON_INSTALL_DIR=$home/python
    export UV_PYTHON_INSTALL_DIR
    "$uv" venv --no-project --clear --no-python-downloads --python '>=3.12,<3.15' "$home/traceonce" ||
        "$uv" venv --no-project --clear --python 3.12 "$home/traceonce"
    "$uv" pip install --python "$python" --require-hashes --no-deps --no-build --compile-bytecode -r requirements.txt
    "$uv" pip install --python "$python" --no-deps --offline --no-index ./traceonce-*.whl
fi

exec "$python" -P -s -m traceonce.bundle.gradescope_run --reference "$home"
