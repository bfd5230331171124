#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_deb.sh SOURCE_DIR BUILD_DIR SCRATCH: makes Debian packages of what BUILD_DIR has, and looks
# into them: all that is installed is in one of them, and what Debian asks for beside it.
# test_deb_full.sh builds what they should have, runs lintian and installs them.
set -euo pipefail
source=$1 build=$2 scratch=$3
command -v dpkg-gencontrol >/dev/null || { echo "dpkg-dev is not installed"; exit 77; }
exec 9>"$scratch.lock" && flock 9 # two runs of ctest in one build folder
rm -rf "$scratch"
mkdir -p "$scratch/all"
cd "$scratch"
rc=0
bad() {
	echo "$*"
	rc=1
}

HAL_DEB_COMPRESS=none "$source/scripts/make-deb" "$build" "$scratch/debs" >make-deb.log 2>&1 ||
	{ cat make-deb.log; exit 1; }
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:[A-Z]*=//p' "$build/CMakeCache.txt")
for package in libaccelhal0 libaccelhal-dev accelhal-tools accelhal-daemon accelhal-npu-models; do
	deb=$(echo debs/"$package"_*.deb)
	[ "$(dpkg-deb -f "$deb" Version)" = "$version" ] || bad "$package: not of version $version"
	dpkg-deb -R "$deb" $package
	doc=$package/usr/share/doc/$package
	[ -s "$doc/copyright" ] || bad "$package: no copyright"
	zcat "$doc/changelog.gz" | grep -q "^accelhal ($version) " || bad "$package: no changelog"
	(cd $package && md5sum --quiet -c DEBIAN/md5sums) || bad "$package: md5sums"
	empty=$(find $package -type d -empty)
	[ -z "$empty" ] || bad "$package: empty: $empty"
	odd=$(find $package/usr ! -type l \( -perm /7022 -o ! -perm -444 \))
	[ -z "$odd" ] || bad "$package: mode: $odd"
	named=$(grep -rlIF -e "$source" -e "$build" -e "$scratch" $package || true)
	[ -z "$named" ] || bad "$package: a path of this machine in $named"
	cp -rn $package/usr all
	rm -rf "all/usr/share/doc/$package" all/usr/share/lintian
done
[ "$(dpkg-deb -f debs/accelhal-tools_*.deb Depends | grep -c "libaccelhal0 (= $version)")" -eq 1 ] ||
	bad "accelhal-tools takes any libaccelhal0"
[ "$(cat libaccelhal0/DEBIAN/triggers)" = "activate-noawait ldconfig" ] || bad "no ldconfig"
while IFS= read -r library; do
	soname=$(objdump -p "$library" | sed -n 's/^ *SONAME *//p')
	for file in shlibs symbols; do
		grep -q "^${soname/.so./[ .a-z]*} libaccelhal0 " libaccelhal0/DEBIAN/$file ||
			bad "$file lacks $soname"
	done
	nm "$library" 2>&1 | grep -q "no symbols" || bad "$library is not stripped"
done < <(find libaccelhal0 -name '*.so.*' -type f)
grep -q "^ hal_open@" libaccelhal0/DEBIAN/symbols || bad "symbols lacks hal_open"

# A user for hald, and nothing of hald in the package that had it before.
for script in postinst prerm postrm; do
	[ -x accelhal-daemon/DEBIAN/$script ] || bad "accelhal-daemon: no $script"
	sh -n accelhal-daemon/DEBIAN/$script || bad "accelhal-daemon: $script"
done
for relation in Breaks Replaces; do
	[ "$(dpkg-deb -f debs/accelhal-daemon_*.deb $relation)" = "accelhal-tools (<< $version)" ] ||
		bad "accelhal-daemon: $relation"
done
old=$(find accelhal-tools -name 'hald*')
[ -z "$old" ] || bad "accelhal-tools has $old"
for unit in service socket; do
	[ -s accelhal-daemon/usr/lib/systemd/system/hald@.$unit ] || bad "no hald@.$unit"
done

# What is installed, and nothing else.
DESTDIR=$scratch/installed cmake --install "$build" --prefix /usr >install.log
rm installed/usr/share/accelhal/install_manifest.txt
find installed/usr/share/man -type f -exec sh -c 'for f; do mv "$f" "$f.gz"; done' sh {} +
diff <(cd installed && find . ! -type d | sort) <(cd all && find . ! -type d | sort) ||
	bad "(above) < installed, > in packages"
exit $rc
