#!/usr/bin/env bash
# Spark needs Java 17 or newer. Find it where Spark will look: JAVA_HOME first, then the PATH.
# Where it is missing, install it if that is a plain thing to do (Debian as root), else say how.
set -uo pipefail
needed=17

major_version() {  # "17.0.15" → 17, "1.8.0_392" → 8, nothing when there is no working java
  "$1" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | sed -n 1p
}

java_in_use() {
  if [ -n "${JAVA_HOME:-}" ]; then echo "$JAVA_HOME/bin/java"; else command -v java || true; fi
}

is_good() {
  local java version
  java="$(java_in_use)"
  [ -n "$java" ] && version="$(major_version "$java")" && [ -n "$version" ] && [ "$version" -ge "$needed" ]
}

how_to() {
  cat >&2 <<HELP
Spark needs a Java runtime, version $needed or newer: $1
  Debian, Ubuntu:  sudo apt-get install openjdk-17-jre-headless
  Fedora:          sudo dnf install java-21-openjdk-headless
  macOS:           brew install openjdk@17
                   export JAVA_HOME="\$(brew --prefix openjdk@17)/libexec/openjdk.jdk/Contents/Home"
  conda:           conda install -c conda-forge openjdk=17
If Java is installed elsewhere, set JAVA_HOME to its folder (the one that holds bin/java).
HELP
  exit 1
}

install_on_debian() {
  local log package
  log="$(mktemp)"
  echo "Java $needed+ is missing; installing it with apt-get ..." >&2
  apt-get update -qq >"$log" 2>&1
  for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
    if DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package" >>"$log" 2>&1 && is_good; then
      rm -f "$log"
      return 0
    fi
  done
  tail -n 5 "$log" >&2
  rm -f "$log"
  return 1
}

is_good && exit 0

if [ -n "${JAVA_HOME:-}" ]; then
  version="$(major_version "$JAVA_HOME/bin/java")"
  found="no working bin/java"
  [ -n "$version" ] && found="Java $version"
  how_to "JAVA_HOME is $JAVA_HOME, which has $found."
fi
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
  install_on_debian && exit 0
  how_to "apt-get could not install it."
fi
version="$(major_version java)"
found="there is none on the PATH."
[ -n "$version" ] && found="the java on the PATH is version $version."
how_to "$found"
