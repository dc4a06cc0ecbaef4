// SPDX-License-Identifier: GPL-2.0

#include <linux/cpumask.h>
#include <linux/percpu-refcount.h>
#include <linux/percpu.h>

#include "rust_rdma_cm.h"

/* The address space of per-CPU pointers is no part of their type in Rust. */
#define PERCPU(type, pointer) ((type __percpu *)(unsigned long)(pointer))

void *rust_rdma_alloc_percpu(size_t size, size_t align)
{
	return (void *)(unsigned long)__alloc_percpu(size, align);
}

void rust_rdma_free_percpu(void *values)
{
	free_percpu(PERCPU(void, values));
}

/* Returns NULL if there can be no such CPU. */
void *rust_rdma_per_cpu_ptr(void *values, unsigned int cpu)
{
	if (cpu >= nr_cpu_ids || !cpu_possible(cpu))
		return NULL;
	return per_cpu_ptr(PERCPU(void, values), cpu);
}

void *rust_rdma_raw_cpu_ptr(void *values)
{
	return raw_cpu_ptr(PERCPU(void, values));
}

void rust_rdma_this_cpu_add(u64 *value, u64 n)
{
	this_cpu_add(*PERCPU(u64, value), n);
}

bool rust_rdma_percpu_ref_tryget_live(struct percpu_ref *ref)
{
	return percpu_ref_tryget_live(ref);
}

void rust_rdma_percpu_ref_put(struct percpu_ref *ref)
{
	percpu_ref_put(ref);
}
