// SPDX-License-Identifier: GPL-2.0
/* Buffers at the edge of what is mapped. */
#include <sys/mman.h>

#include "abi.h"

/* The mappings; a program that makes many cases in one process gives them back. */
static struct {
	void *start;
	size_t size;
} maps[1024];
static size_t nr_maps;

static void remember(void *start, size_t size)
{
	if (nr_maps < sizeof(maps) / sizeof(maps[0])) {
		maps[nr_maps].start = start;
		maps[nr_maps++].size = size;
	}
}

void unmap_all(void)
{
	while (nr_maps > 0) {
		nr_maps--;
		munmap(maps[nr_maps].start, maps[nr_maps].size);
	}
}

static void *map(size_t size, int last)
{
	size_t page = sysconf(_SC_PAGESIZE);
	size_t body = (size + page - 1) / page * page;
	char *p = mmap(NULL, body + page, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		fail(__FILE__, __LINE__, "mmap: %s", strerror(errno));
		stop();
	}
	remember(p, body + page);
	mprotect(p + body, page, last);
	return p + body - size;
}

void *edge(size_t size)
{
	return map(size, PROT_NONE);
}

void *edge_fill(size_t size, uint8_t byte)
{
	return memset(edge(size), byte, size);
}

void *edge_copy(const void *data, size_t size)
{
	void *p = edge(size);

	if (size)
		memcpy(p, data, size);
	return p;
}

void *unmapped(void)
{
	/* The end of an empty buffer is the page that is not mapped. */
	return edge(0);
}

void *readonly(size_t size)
{
	size_t page = sysconf(_SC_PAGESIZE);
	size_t body = (size + page) / page * page;
	void *p = mmap(NULL, body, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	remember(p, body);
	return p;
}
