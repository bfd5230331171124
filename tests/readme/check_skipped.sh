#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_skipped.sh SOURCE_DIR: what make check says of skipped tests names them and the reason.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.22)
project(skips NONE)
enable_testing()
add_test(NAME one COMMAND sh -c "echo talk; echo 'skipped: no folder: give -DX=FOLDER'; exit 77")
add_test(NAME two COMMAND sh -c "echo 'no folder: give -DX=FOLDER'; exit 77")
add_test(NAME mute COMMAND sh -c "exit 77")
add_test(NAME good COMMAND sh -c "echo 'skipped: it says'; exit 0")
set_tests_properties(one two mute good PROPERTIES SKIP_RETURN_CODE 77)
END
cmake -S "$dir" -B "$dir/build" >/dev/null
ctest -j1 --test-dir "$dir/build" >"$dir/out"
diff - <("$1/scripts/skipped" "$dir/build" "$dir/out") <<'END'
skipped, no folder: give -DX=FOLDER: one two
skipped, no reason given: mute
END
