/* SPDX-License-Identifier: Apache-2.0 */
/* memfd.c - memory that several processes map. */
#define _GNU_SOURCE
#include "memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define U64(n) ((unsigned long long)(n))

uint64_t memfd_size(uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return bytes + (page - bytes % page) % page;
}

int memfd_make(const struct hal_host *host, const char *backend, uint64_t bytes, int *out)
{
	int fd = memfd_create(backend, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	if (fd < 0)
		return host->fail(errno, "%s: memfd_create: %s", backend,
				  strerrordesc_np(errno));
	if (ftruncate(fd, (off_t)memfd_size(bytes)) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
		err = host->fail(errno, "%s: a memory file of %llu bytes: %s", backend,
				 U64(bytes), strerrordesc_np(errno));
		(void)close(fd);
		return err;
	}
	*out = fd;
	return 0;
}

int memfd_check(const struct hal_host *host, const char *backend, int fd, uint64_t bytes)
{
	const int write_seals = F_SEAL_WRITE | F_SEAL_FUTURE_WRITE;
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	if (seals < 0 || fstat(fd, &st) != 0 || fstatfs(fd, &fs) != 0)
		return host->fail(
			EINVAL,
			"%s: descriptor %d is not memory that this device can "
			"import: hal_buffer_export of ref or npu, or memfd_create",
			backend, fd);
	/* mmap rounds the length of a mapping of huge pages up to one.  With MAP_FIXED it
	 * would replace what lies behind the range. */
	if ((uint32_t)fs.f_type == HUGETLBFS_MAGIC)
		return host->fail(
			EINVAL,
			"%s: the memory file of descriptor %d has huge pages: make it "
			"without MFD_HUGETLB",
			backend, fd);
	if ((seals & F_SEAL_SHRINK) == 0)
		return host->fail(
			EINVAL,
			"%s: the memory file of descriptor %d may shrink: seal it "
			"with F_SEAL_SHRINK first",
			backend, fd);
	if ((seals & write_seals) != 0 || (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDWR)
		return host->fail(
			EINVAL, "%s: the memory file of descriptor %d cannot be written",
			backend, fd);
	if ((uint64_t)st.st_size < bytes)
		return host->fail(
			EINVAL,
			"%s: descriptor %d has %llu bytes; %llu are to be imported",
			backend, fd, U64(st.st_size), U64(bytes));
	return 0;
}

int memfd_copy(const struct hal_host *host, const char *backend, int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0), err;

	if (copy >= 0)
		return copy;
	err = errno == EINVAL ? EMFILE : errno; /* EINVAL: a limit of 0 */
	return host->fail(err, "%s: the descriptor cannot be copied: %s", backend,
			  strerrordesc_np(err));
}
