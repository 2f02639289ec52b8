#!/usr/bin/env bash
# Makes one kind of distribution, installs it as a user would, and uses it.
#
# usage: run.sh installed|archive|debian CMAKE BUILD SOURCE LIBDIR CXX CC

set -euo pipefail

kind=$1 cmake=$2 build=$3 source=$4 libdir=$5 cxx=$6 cc=$7
tests=$source/tests/package
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 002 # the default of some systems; must make no difference

need() {
    command -v "$1" >/dev/null && return
    echo "package: skipped, there is no $1 (Debian: $2)"
    exit 77
}
pack() {
    if ! "$(dirname "$cmake")/cpack" --config "$build/CPackConfig.cmake" -G "$1" -B "$work/out" \
        >"$work/log" 2>&1; then
        cat "$work/log"
        exit 1
    fi
    rm -r "$work/out/_CPack_Packages"
}

case $kind in
installed)
    "$cmake" --install "$build" --prefix "$work/prefix" --strip >/dev/null
    prefix=$work/prefix
    ;;
archive)
    need patchelf patchelf
    pack TGZ
    mkdir "$work/elsewhere"
    tar -xzf "$work"/out/*.tar.gz -C "$work/elsewhere"
    mv "$work"/elsewhere/catena-* "$work/elsewhere/my catena"
    prefix="$work/elsewhere/my catena"
    ;;
debian)
    need dpkg-shlibdeps dpkg-dev
    pack DEB
    "$tests/deb.sh" "$work"/out/*.deb
    dpkg-deb -x "$work"/out/*.deb "$work/root"
    prefix=$work/root/usr
    ;;
esac
[[ $kind == installed ]] || du -m "$work"/out/* | sed "s|$work/out/||; s|\t| MiB |"

python3 "$source/tests/docs/docs_test.py" --installed "$prefix/share/doc/catena"

# A mount namespace hides the sources, the build and the system's copies of the archive's libraries.
cp "$tests"/{use,hand,alone,hide}.sh "$work"
hidden=()
if ((EUID == 0)) && unshare -m true 2>/dev/null; then
    hidden=(unshare -m "$work/hide.sh" "$source" "$build")
    [[ $kind == archive ]] && hidden+=("$prefix/$libdir/catena/private")
    hidden+=(--)
else
    echo "package: not root, or no namespaces: the sources and the system's libraries stay visible"
fi
environment=(env -i "PATH=$(dirname "$cmake"):/usr/local/bin:/usr/bin:/bin" "HOME=$work/home"
    "CC=$cc" "CXX=$cxx")
mkdir "$work/home" "$work/empty"
cd "$work/empty"
case $kind in
installed) # compiled without optimization to save time; the archive uses the templates' default
    "${hidden[@]}" "${environment[@]}" CXXFLAGS=-O0 CMAKE_BUILD_TYPE=None "$work/use.sh" "$prefix"
    ;;
archive)
    "${hidden[@]}" "${environment[@]}" "$work/use.sh" "$prefix"
    "$work/alone.sh" "$prefix" "$libdir"
    ;;
debian) "${hidden[@]}" "${environment[@]}" "$work/hand.sh" "$prefix" "$libdir" ;;
esac
