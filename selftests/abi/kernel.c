// SPDX-License-Identifier: GPL-2.0
/* The kernel and the machine that the programs run on. */
#include "abi.h"

bool is_rust(void)
{
	return access("/sys/module/rust_rdma_cm", F_OK) == 0;
}

int patience(void)
{
	return access("/sys/kernel/debug/kmemleak", F_OK) == 0 ? 5 : 1;
}

long read_number(const char *path)
{
	FILE *f = fopen(path, "r");
	long value = -1;

	if (!f)
		return -errno;
	if (fscanf(f, "%li", &value) != 1)
		value = -EIO;
	fclose(f);
	return value;
}
