// SPDX-License-Identifier: GPL-2.0
/*
 * Coverage of the tasks of the kernel (KCOV), for fuzzers. Only for kernels that have it.
 */
#include <linux/preempt.h>
#include <linux/sched.h>

#include "rust_rdma_cm.h"

/*
 * Begins to report the blocks that the current task runs, to the fuzzer that asked for them with
 * this common handle. A task of a program is not reported: it asks for its own blocks. Reports are
 * not nested.
 */
bool rust_rdma_kcov_remote_start(u32 handle)
{
	if (!preemptible() || !(current->flags & PF_KTHREAD) || current->kcov_mode)
		return false;
	kcov_remote_start(kcov_remote_handle(KCOV_SUBSYSTEM_COMMON, handle));
	return true;
}
