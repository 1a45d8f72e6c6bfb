#!/bin/sh
# Make, extend or repair the environment in .venv/, from nothing but a Python and a package index.
#
#   sh requirements/make_env.sh learn   what a learner needs (learn.txt)
#   sh requirements/make_env.sh dev     that, and what the tests and the authors need (dev.txt)
#   sh requirements/make_env.sh latest  as dev, in .venv-latest/, with the newest JAX that pyproject.toml allows (latest.txt)
#   sh requirements/make_env.sh site    what makes and checks the site and the slides, in .venv-site/ (site.txt)
#   sh requirements/make_env.sh pins    make the lists again; UPGRADE=1 takes the newest versions that pyproject.toml allows
#   sh requirements/make_env.sh find    print the Python that would be used
#   sh requirements/make_env.sh outdated  print what of .venv/ has a newer version in the index, JAX beyond pyproject.toml's bounds included
#
#   PYTHON=/path/to/python              use this one
#   ACCELERATOR=cuda13|cuda12|cpu       JAX for an NVIDIA GPU on Linux (cuda13.txt, cuda12.txt), or for the CPU again
#
# The lists name packages, versions and hashes, and no address: the index is the one that pip or uv is set up for.
# An environment never shrinks: once it holds the tests or a GPU's JAX, a plain `learn` keeps them up to date.
# Exit codes: 0 done, 2 wrong usage, 3 it could not be done; one sentence then says what to do.
set -eu
unset CDPATH VIRTUAL_ENV PYTHONHOME PYTHONPATH
# Messages of the tools are read below, so they must come in English.
LC_ALL=C
export LC_ALL

cd "$(dirname "$0")/.."
root=$(pwd -P)
log=.bootstrap/make_env.log
# The newest JAX lives beside the locked one, so that both can be tested; the site's tools share nothing with the course's.
venv=.venv
marker=.bootstrap/installing
case ${1:-} in
latest | site)
    venv=.venv-$1
    marker=.bootstrap/installing-$1
    ;;
esac
stamp=$venv/.traceonce-stamp

say() { printf '%s\n' "$*"; }

fail() {
    printf 'make_env: %s\n' "$*" >&2
    exit 3
}

fail_usage() {
    printf 'make_env: %s\n' "$*" >&2
    exit 2
}

# --- a Python that runs -------------------------------------------------------------------------------------------

# Prints "VERSION|EXECUTABLE|FAULT". The executable is the one under any virtual environment, so that it survives
# when .venv is made anew; the fault is empty for a Python that will do.
probe_program='
import importlib, os, struct, sys, sysconfig
fault = ""
if not (3, 12) <= sys.version_info[:2] <= (3, 14):
    fault = "is version %d.%d.%d" % sys.version_info[:3]
elif sys.implementation.name != "cpython":
    fault = "is not CPython"
elif struct.calcsize("P") != 8:
    fault = "is a 32-bit build"
elif sysconfig.get_config_var("Py_GIL_DISABLED"):
    fault = "is a free-threaded build"
else:
    for name in ("ctypes", "sqlite3", "ssl", "venv", "zlib"):
        try:
            importlib.import_module(name)
        except ImportError:
            fault = "was built without " + name
            break
executable = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
print("%d.%d.%d|%s|%s" % (sys.version_info[:3] + (executable, fault)))
'

# A version manager may put a python3.12 on PATH that only says that no such version is chosen, so each one is run.
probe() { "$1" -I -c "$probe_program" 2>/dev/null </dev/null || printf '?|%s|does not run\n' "$1"; }

# on_path NAME: each executable of that name, not only the first.
on_path() {
    printf '%s\n' "$PATH" | tr ':' '\n' | while IFS= read -r folder; do
        if [ -n "$folder" ] && [ -f "$folder/$1" ] && [ -x "$folder/$1" ]; then
            # On macOS this one opens a dialogue that offers to install developer tools, where they are missing.
            [ "$folder/$1" = /usr/bin/python3 ] && [ "$(uname)" = Darwin ] && ! xcode-select -p >/dev/null 2>&1 && continue
            printf '%s\n' "$folder/$1"
        fi
    done
}

# held MINOR: where version managers, distributions and installers keep a Python 3.MINOR, exposed or not.
held() {
    home=${HOME:-/nonexistent}
    data=${XDG_DATA_HOME:-$home/.local/share}
    for path in \
        "${PYENV_ROOT:-$home/.pyenv}"/versions/3."$1".*/bin/python3 "$home"/.pyenv/versions/3."$1".*/bin/python3 \
        "${UV_PYTHON_INSTALL_DIR:-$data/uv/python}"/cpython-3."$1".*/bin/python3 \
        "${ASDF_DATA_DIR:-$home/.asdf}"/installs/python/3."$1".*/bin/python3 \
        "${MISE_DATA_DIR:-$data/mise}"/installs/python/3."$1".*/bin/python3 \
        "$home"/.rye/py/cpython@3."$1".*/bin/python3 \
        "${CONDA_PREFIX:-/nonexistent}/bin/python3.$1" "${MAMBA_ROOT_PREFIX:-$home/micromamba}/bin/python3.$1" \
        "${MAMBA_ROOT_PREFIX:-$home/micromamba}"/envs/*/bin/python3."$1" \
        "$home"/*conda3/bin/python3."$1" "$home"/*conda3/envs/*/bin/python3."$1" \
        "$home"/*forge*/bin/python3."$1" "$home"/*forge*/envs/*/bin/python3."$1" \
        /opt/*conda*/bin/python3."$1" /opt/*conda*/envs/*/bin/python3."$1" \
        "${HOMEBREW_PREFIX:-/opt/homebrew}/bin/python3.$1" /opt/homebrew/opt/python@3."$1"/bin/python3."$1" \
        /home/linuxbrew/.linuxbrew/bin/python3."$1" \
        /Library/Frameworks/Python.framework/Versions/3."$1"/bin/python3."$1" \
        "$home/.nix-profile/bin/python3.$1" "$home/.local/bin/python3.$1" \
        /usr/local/bin/python3."$1" /usr/bin/python3."$1" /opt/*/bin/python3."$1"; do
        if [ -x "$path" ]; then printf '%s\n' "$path"; fi
    done
}

# find_python: sets `python` and `version`, or fails. What was tried stands in `tried`.
find_python() {
    tried=
    if [ -n "${PYTHON:-}" ]; then
        found=$(probe "$PYTHON")
        fault=${found##*|}
        [ -z "$fault" ] || fail "PYTHON=$PYTHON $fault: name a Python 3.12, 3.13 or 3.14, or leave PYTHON out."
        take "$found"
        return
    fi
    generic=
    for name in python3 python; do
        generic="$generic
$(on_path "$name" | while IFS= read -r path; do probe "$path"; done)"
    done
    for minor in 12 13 14; do
        candidates=$({ on_path "python3.$minor"; held "$minor"; } | while IFS= read -r path; do probe "$path"; done)
        tried="$tried
$candidates"
        found=$(printf '%s\n%s\n' "$candidates" "$generic" | grep "^3\.$minor\.[0-9]*|.*|\$" | head -n 1) || true
        if [ -n "$found" ]; then
            take "$found"
            return
        fi
    done
    tried="$tried$generic"
    seen=$(printf '%s\n' "$tried" | awk -F'|' 'NF == 3 && !known[$2]++ { printf "%s%s %s", separator, $2, $3; separator = "; " }')
    fail "No Python 3.12, 3.13 or 3.14 that runs was found${seen:+ ($seen)}:" \
        "install one with your package manager or version manager, or name one with PYTHON=/path/to/python, and start again."
}

take() {
    version=${1%%|*}
    python=${1#*|}
    python=${python%|*}
}

# --- what is there, and what is wanted -----------------------------------------------------------------------------

# The parts of pyproject.toml that an installed environment depends on; linters may change theirs freely.
project_fields() { awk '/^\[/ { wanted = /^\[(build-system|project|tool\.hatch)/ } wanted' pyproject.toml; }

lists() {
    say "requirements/$kind.txt"
    [ "$accelerator" = cpu ] || say "requirements/$accelerator.txt"
}

# A stamp is the whole of what the environment was made from; equal stamps mean that there is nothing to do.
wanted_stamp() {
    say "kind $kind"
    say "accelerator $accelerator"
    say "root $root"
    say "python $1"
    # shellcheck disable=SC2046  # the names of the lists hold no spaces
    say "made from $({ cat $(lists) && project_fields; } | cksum)"
}

stamped() { sed -n "s/^$1 //p" "$2" 2>/dev/null || true; }

# settle: sets `kind` and `accelerator` to the larger of what is asked for and what is there.
settle() {
    had=
    accelerator=${ACCELERATOR:-}
    for record in "$stamp" "$marker"; do
        if [ -f "$record" ]; then
            [ "$(stamped kind "$record")" != dev ] || kind=dev
            had=$(stamped accelerator "$record")
            accelerator=${accelerator:-$had}
        fi
    done
    accelerator=${accelerator:-cpu}
    had=${had:-cpu}
}

is_ready() {
    [ ! -e "$marker" ] && [ -f "$stamp" ] && [ -x $venv/bin/python ] && [ -x $venv/bin/traceonce ] || return 1
    if [ -n "${PYTHON:-}" ]; then
        find_python
        [ "$(stamped python "$stamp")" = "$version $python" ] || return 1
    fi
    [ "$(wanted_stamp "$(stamped python "$stamp")")" = "$(cat "$stamp")" ]
}

check_folders() {
    for folder in . $venv .bootstrap; do
        if [ -e "$folder" ] && [ ! -w "$folder" ]; then
            fail "$root${folder#.} is not writable for you: change its owner or rights, or take a copy of the project that is yours."
        fi
    done
    if [ -e $venv ] && [ ! -f $venv/pyvenv.cfg ] && [ ! -e "$marker" ] && [ -n "$(ls -A $venv)" ]; then
        fail "$root/$venv is not a Python environment: move it away and start again."
    fi
    mkdir -p .bootstrap
}

# locked ARGUMENTS: run this script again with a lock held. The system drops the lock when the last process that holds it
# ends, however it ends, so none is ever left behind.
locked() {
    exec "$python" -I -c '
import fcntl, os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
lock = os.open(".bootstrap/lock", os.O_RDWR | os.O_CREAT, 0o666)
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("Another start is at work on the environment; waiting for it.", flush=True)
    fcntl.flock(lock, fcntl.LOCK_EX)
os.set_inheritable(lock, True)
os.environ["TRACEONCE_ENV_LOCKED"] = "1"
os.execvp("sh", ["sh", "requirements/make_env.sh", *sys.argv[1:]])
' "$@"
}

# --- tools, each with its output in the log --------------------------------------------------------------------------

logged() { "$@" >>"$log" 2>&1; }

# visibly COMMAND: with its progress on a terminal. A failure is tried once more, which mends a dropped connection and puts
# the tool's own words into the log.
visibly() {
    if [ -t 2 ] && "$@"; then return 0; fi
    logged "$@"
}

# give_up SENTENCE: the sentence, unless the log shows a cause that a person can mend.
give_up() {
    where="its own words are in $log."
    if grep -qiE 'no space left|disk quota' "$log"; then
        fail "There is no space left for the environment: free about $needed_mb MB and start again; $where"
    elif grep -qiE 'hash(es)? (mismatch|do not match)|DO NOT MATCH THE HASHES' "$log"; then
        fail "A downloaded package is not the one that the list was made for: check which index pip or uv is set up for; $where"
    elif grep -qiE 'error sending request|dns error|failed to lookup|name resolution|not known|connection (refused|reset|error)|unreachable|timed out|timeout|failed to fetch|NewConnectionError|certificate|ProxyError|no such host|tunnel|status client error|status server error|No matching distribution' "$log"; then
        fail "The package index could not be reached: check the network, or point UV_DEFAULT_INDEX and PIP_INDEX_URL at an index that you can reach, and start again; $where"
    elif grep -qiE 'no (compatible )?wheels|not compatible|no wheel|only-binary|--no-build' "$log"; then
        fail "Some package has no ready-made build for this machine ($(uname -s) $(uname -m), Python $version): use a 64-bit Linux or macOS; $where"
    elif grep -qiE 'permission denied|read-only file system' "$log"; then
        fail "A file could not be written: make the project's folder and your cache folder writable and start again; $where"
    fi
    fail "$1; $where"
}

check_space() {
    free_kb=$(df -Pk . 2>/dev/null | awk 'NR == 2 { print $4 }') || free_kb=
    if [ -n "$free_kb" ] && [ "$free_kb" -lt $((needed_mb * 1024)) ]; then
        fail "The environment needs about $needed_mb MB and $root has only $((free_kb / 1024)) MB left: free some space and start again."
    fi
}

# index_settings: let uv use the index and certificates that pip is set up for, since it does not read pip's files.
index_settings() {
    if [ -z "${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}" ]; then
        address=${PIP_INDEX_URL:-$(pip_setting index-url)}
        if [ -n "$address" ]; then
            UV_DEFAULT_INDEX=$address
            export UV_DEFAULT_INDEX
        fi
    fi
    if [ -z "${SSL_CERT_FILE:-}" ]; then
        bundle=${PIP_CERT:-$(pip_setting cert)}
        if [ -n "$bundle" ] && [ -f "$bundle" ]; then
            SSL_CERT_FILE=$bundle
            export SSL_CERT_FILE
        fi
    fi
}

pip_setting() {
    for section in install global; do
        if "$python" -m pip config get "$section.$1" 2>/dev/null; then return; fi
    done
}

pinned_uv() { sed -n 's/^uv==\([0-9.]*\).*/\1/p' requirements/bootstrap.txt; }

# uv_version PATH: its version, or nothing for a uv that does not run.
uv_version() { "$1" --version 2>/dev/null </dev/null | awk '$1 == "uv" { print $2 }'; }

# Older ones lack options that are used here.
is_recent_uv() { uv_version "$1" | awk -F. '{ exit !($1 > 0 || $2 >= 8) } END { if (!NR) exit 1 }'; }

# find_uv: sets `uv`: the pinned one if it was fetched before, one on PATH that is recent enough, or the pinned one, fetched now.
# `find_uv pinned` takes no other.
find_uv() {
    for uv in "$root/.bootstrap/venv/bin/uv" "$root/.bootstrap/target/bin/uv"; do
        if [ -x "$uv" ] && [ "$(uv_version "$uv")" = "$(pinned_uv)" ]; then return; fi
    done
    if [ "${1:-}" != pinned ]; then
        uv=$(on_path uv | while IFS= read -r path; do
            if is_recent_uv "$path"; then
                printf '%s\n' "$path"
                break
            fi
        done)
        if [ -n "$uv" ]; then return; fi
    fi
    fetch_uv
}

fetch_uv() {
    say "Fetching uv $(pinned_uv), which installs the rest."
    rm -rf .bootstrap/venv .bootstrap/target
    PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_REQUIRE_VIRTUALENV=0 PIP_USER=0 PIP_NO_INPUT=1
    export PIP_DISABLE_PIP_VERSION_CHECK PIP_REQUIRE_VIRTUALENV PIP_USER PIP_NO_INPUT
    set -- --quiet --require-hashes --only-binary :all: --no-deps -r requirements/bootstrap.txt
    if logged "$python" -m venv .bootstrap/venv && [ -x .bootstrap/venv/bin/pip ]; then
        logged .bootstrap/venv/bin/python -m pip install "$@" || give_up "uv could not be installed"
        uv=$root/.bootstrap/venv/bin/uv
        return
    fi
    # Some distributions split off what gives a virtual environment its pip. Any pip will do: uv is the same for every Python.
    for other in "$python" $(on_path python3) $(on_path python); do
        if "$other" -m pip --version >/dev/null 2>&1; then
            logged "$other" -m pip install --target .bootstrap/target "$@" || give_up "uv could not be installed"
            uv=$root/.bootstrap/target/bin/uv
            return
        fi
    done
    fail "$python has neither pip nor ensurepip: install your system's python3-venv or python3-pip package, or uv, and start again."
}

# --- the environment -----------------------------------------------------------------------------------------------

install() {
    settle
    if is_ready; then return; fi
    # The files of the environment (733 MB were measured), and as much again for what is downloaded and unpacked.
    needed_mb=1500
    [ "$accelerator" = cpu ] || needed_mb=9000
    : >"$log"

    fresh=
    if [ -e "$marker" ]; then
        say "The last installation was interrupted; making the environment anew."
        fresh=1
    elif ! logged $venv/bin/python -c ''; then
        fresh=1
    elif [ -f "$stamp" ] && [ "$(stamped root "$stamp")" != "$root" ]; then
        fresh=1
    elif [ "$had" != cpu ] && [ "$had" != "$accelerator" ]; then
        fresh=1
    elif [ -n "${PYTHON:-}" ] && [ "$(stamped python "$stamp")" != "$version $python" ]; then
        fresh=1
    fi
    if [ -n "$fresh" ]; then check_space; fi
    index_settings
    find_uv
    if [ -n "${HOME:-}" ] && [ ! -w "$HOME" ] && [ -z "${UV_CACHE_DIR:-}${XDG_CACHE_HOME:-}" ]; then
        UV_CACHE_DIR=$root/.bootstrap/cache
        export UV_CACHE_DIR
    fi
    UV_PYTHON_DOWNLOADS=never
    export UV_PYTHON_DOWNLOADS

    { say "kind $kind" && say "accelerator $accelerator"; } >"$marker"
    rm -f "$stamp"
    if [ -n "$fresh" ]; then
        say "Making the environment in $venv with Python $version. The first time downloads some hundred MB."
        logged "$uv" venv --no-project --clear --python "$python" --prompt traceonce $venv ||
            give_up "The environment could not be made"
    else
        say "Bringing the environment in $venv up to date."
    fi
    set -- pip install --python $venv/bin/python
    # The lists are complete, so nothing is resolved again. Bytecode is written now: without it each process that may not write
    # its own compiles all of JAX and Jupyter at every start.
    # shellcheck disable=SC2046  # as above
    visibly "$uv" "$@" --require-hashes --no-deps --no-build --compile-bytecode $(lists | sed 's/^/-r /') || give_up "The packages could not be installed"
    logged "$uv" "$@" --no-deps --no-build-isolation --offline -e . || give_up "The project itself could not be installed"
    wanted_stamp "$($venv/bin/python -I -c "$probe_program" | awk -F'|' '{ print $1 " " $2 }')" >"$stamp.part"
    mv "$stamp.part" "$stamp"
    rm -f "$marker"
    say "The environment is ready."
}

# --- the lists -------------------------------------------------------------------------------------------------------

# compile NAME SOURCES...: one list, in .bootstrap/pins. Versions stay as they are unless UPGRADE is set.
# rfc3987-syntax is left out: jsonschema does without it (it only checks the format "iri"), and with it every process that
# imports nbformat builds grammars for seconds.
compile() {
    list=$1
    shift
    visibly "$uv" pip compile --quiet --universal --python "$python" --python-version 3.12 --generate-hashes --no-header --no-annotate \
        --no-emit-index-url --no-emit-package rfc3987-syntax ${UPGRADE:+--upgrade} -o ".bootstrap/pins/$list.txt" "$@" >/dev/null ||
        give_up "The list $list.txt could not be made"
}

pins() {
    needed_mb=100
    : >"$log"
    index_settings
    find_uv pinned
    UV_PYTHON_DOWNLOADS=never
    export UV_PYTHON_DOWNLOADS
    rm -rf .bootstrap/pins
    mkdir .bootstrap/pins
    cp requirements/*.txt .bootstrap/pins/
    project="pyproject.toml requirements/lock.in requirements/build.in"
    compile bootstrap requirements/bootstrap.in
    # The largest list first; the others take their versions from it, so that each fits into the same environment.
    # shellcheck disable=SC2086  # a list of names
    {
        compile dev $project --extra dev
        compile learn $project --constraint .bootstrap/pins/dev.txt
        # What an autograder installs beside the project's wheel: what learners have, and what a judge needs.
        compile grade pyproject.toml requirements/lock.in --extra grade --constraint .bootstrap/pins/dev.txt
        # The same without lock.in: whatever JAX is newest within pyproject.toml's bounds.
        compile latest pyproject.toml requirements/build.in --extra dev
        # The site's tools alone, without what the project itself depends on.
        compile site requirements/site.in requirements/build.in --constraint .bootstrap/pins/dev.txt
        for cuda in cuda12 cuda13; do
            compile "$cuda" $project --extra "$cuda" --constraint .bootstrap/pins/dev.txt
            { say "# learn.txt with JAX's wheels for NVIDIA GPUs, CUDA ${cuda#cuda}, Linux: make learn ACCELERATOR=$cuda" &&
                grep -v '^#' ".bootstrap/pins/$cuda.txt"; } >".bootstrap/pins/$cuda.part"
            mv ".bootstrap/pins/$cuda.part" ".bootstrap/pins/$cuda.txt"
        done
    }
    if grep -l '://' .bootstrap/pins/*.txt >>"$log"; then
        fail "A list would hold an address, named in $log: take out of pyproject.toml what is not a plain package name, and start again."
    fi
    mv .bootstrap/pins/*.txt requirements/
    rm -rf .bootstrap/pins
    say "The lists in requirements/ are made."
}

# outdated: of the packages in .venv/, those that the index has newer. Nothing is changed.
outdated() {
    [ -x .venv/bin/python ] || fail "There is no environment to compare: run \`make env KIND=dev\` first."
    find_python
    mkdir -p .bootstrap
    : >"$log"
    needed_mb=100
    index_settings
    find_uv
    "$uv" pip list --quiet --outdated --python .venv/bin/python 2>>"$log" || give_up "The index could not be asked"
}

# --- what was asked for ------------------------------------------------------------------------------------------------

kind=${1:-}
case $kind in
learn | dev | latest | site | pins) ;;
find)
    find_python
    say "$python"
    exit 0
    ;;
outdated)
    outdated
    exit 0
    ;;
*) fail_usage "say what to make: learn, dev, latest, site, pins, find or outdated." ;;
esac
case ${ACCELERATOR:-} in
'' | cpu) ;;
cuda12 | cuda13) [ "$(uname -s)" = Linux ] || fail_usage "ACCELERATOR=$ACCELERATOR needs Linux: leave it out for the CPU." ;;
*) fail_usage "ACCELERATOR=$ACCELERATOR is not known: use cuda13, cuda12 or cpu." ;;
esac

if [ -z "${TRACEONCE_ENV_LOCKED:-}" ]; then
    if [ "$kind" != pins ]; then
        settle
        if is_ready; then exit 0; fi
        kind=$1
    fi
    check_folders
    find_python
    locked "$@"
fi
find_python
if [ "$kind" = pins ]; then pins; else install; fi
