#!/usr/bin/env bash
# Make the virtual environment: what requirements.lock says, checked by hash, and Weft itself.
# Usage: scripts/make_venv.sh [DIR]      (default .venv)
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${1:-.venv}

say() { if [ -t 2 ]; then printf '\033[1m%s\033[0m\n' "$*" >&2; else echo "$*" >&2; fi; }

is_new_enough() {
  "$1" -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
  local candidate
  for candidate in "${PYTHON:-python3}" python3 python3.13 python3.12 python3.11; do
    if command -v "$candidate" >/dev/null 2>&1 && is_new_enough "$candidate"; then
      echo "$candidate"
      return
    fi
  done
  cat >&2 <<'HELP'
Weft needs Python 3.11 or newer, and none was found on the PATH.
  Debian, Ubuntu:  apt-get install python3 python3-venv
  Fedora:          dnf install python3.12
  macOS:           brew install python@3.12
  conda:           conda create -n weft python=3.12 && conda activate weft
If it is installed under another name:  make PYTHON=/path/to/python3
HELP
  return 1
}

make_empty_venv() {  # Debian ships python3 without the venv module; get it where we may
  if "$1" -m venv "$venv" >/dev/null 2>&1; then return; fi
  rm -rf "$venv"
  local package
  package="$("$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
  if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    say "installing $package ..."
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package" >/dev/null
  fi
  if ! "$1" -m venv "$venv"; then
    rm -rf "$venv"
    echo "Python cannot make a virtual environment. On Debian or Ubuntu: sudo apt-get install $package" >&2
    return 1
  fi
}

if ! is_new_enough "$venv/bin/python"; then
  python="$(find_python)"
  say "making $venv with $("$python" --version) ..."
  make_empty_venv "$python"
fi

pip=("$venv/bin/python" -m pip --disable-pip-version-check)
say "installing what Weft needs (Spark is 450 MB; some minutes the first time) ..."
"${pip[@]}" install --quiet --require-hashes -r requirements.lock
say "installing weft ..."
"${pip[@]}" install --quiet --no-deps -e .
