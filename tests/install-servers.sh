#!/bin/sh
# Brings what the tests need beside Python: MariaDB, Galera, PostgreSQL, PgBouncer, what mysqlclient is built with, and Chromium.
# On Debian and Ubuntu it installs the packages (through sudo where we are not root). Elsewhere it says what is
# missing. The tests start servers of their own: those of the packages are not started.
set -eu

python=${PYTHON:-python3}
packages=
add() { packages="$packages $1"; }

have() {
    for place in "$(command -v "$1" || true)" /usr/sbin/"$1" /usr/local/sbin/"$1" /usr/lib/postgresql/*/bin/"$1" \
        /usr/pgsql-*/bin/"$1" /opt/homebrew/opt/*/bin/"$1"; do
        [ -n "$place" ] && [ -x "$place" ] && return 0
    done
    return 1
}

has_client_library() {
    # As mysqlclient's own build looks for it.
    command -v pkg-config >/dev/null || return 1
    for library in mysqlclient mariadb libmariadb perconaserverclient; do
        pkg-config --exists "$library" && return 0
    done
    return 1
}

have_galera() {
    for library in /usr/lib/galera/libgalera_smm.so /usr/lib*/galera-4/libgalera_smm.so; do
        [ -e "$library" ] && return 0
    done
    return 1
}

have_python_header() {
    "$python" -c 'import os, sysconfig; raise SystemExit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))'
}

have mariadbd && have mariadb-install-db || add mariadb-server
have postgres && have initdb || add postgresql
has_client_library || { add libmariadb-dev; add pkg-config; }
have cc || have gcc || add gcc
have_python_header || add python3-dev
have_galera || add galera-4
have rsync || add rsync
have lsof || add lsof
have openssl || add openssl
have pgbouncer || add pgbouncer
have chromium || have chromium-browser || have google-chrome || add chromium

[ -z "$packages" ] && exit 0

if ! command -v apt-get >/dev/null; then
    echo "The tests need MariaDB with Galera, PostgreSQL, PgBouncer, a C build of mysqlclient, and Chromium; install what Debian calls:$packages" >&2
    exit 1
fi

as_root=
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "As root: apt-get install$packages" >&2; exit 1; }
    as_root=sudo
fi

echo "Installing$packages ..."
# Debian's way of not starting the servers of packages; where the file is there already, it has its say.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap '$as_root rm -f "$policy"' EXIT
    trap 'exit 1' HUP INT TERM
    printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
    $as_root chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq </dev/null
# shellcheck disable=SC2086 # a list of words
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages </dev/null >/dev/null
