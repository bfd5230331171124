# SPDX-License-Identifier: Apache-2.0
# Toolchain: aarch64 Linux from a machine of another kind, with Debian's cross compiler.
# `scripts/setup aarch64` installs it, and unpacks the libraries into the sysroot named here;
# what is built runs under qemu-user.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

# The C library is the cross compiler's own, the others are the sysroot's.
set(libc /usr/aarch64-linux-gnu)
get_filename_component(sysroot ${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-sysroot ABSOLUTE)
if(NOT EXISTS ${sysroot})
	message(FATAL_ERROR "${sysroot} is missing: scripts/setup aarch64 makes it")
endif()
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${libc})

# Nothing of the building machine but its programs.  Its headers, which the cross compiler
# looks at last, must not be seen: libck's say that no store is reordered, and leave barriers out.
set(CMAKE_C_FLAGS_INIT "-isystem ${sysroot}/usr/include")
set(CMAKE_CXX_FLAGS_INIT "-isystem ${sysroot}/usr/include")
set(CMAKE_FIND_ROOT_PATH ${sysroot} ${libc})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${sysroot})
set(ENV{PKG_CONFIG_LIBDIR} ${sysroot}/usr/lib/aarch64-linux-gnu/pkgconfig)
