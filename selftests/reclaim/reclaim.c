// SPDX-License-Identifier: GPL-2.0
/*
 * A module that looks at the memory that a connection manager allocates, or that is allocated for
 * it, in work queues: in timers, in callbacks, where messages come in and where addresses are
 * answered. Storage depends on that: what may wait for input or output there may wait for itself.
 *
 * The stack says if an allocation is the connection manager's: the manager is in it, and the work
 * item is the manager's, or one of the RDMA core, which calls it. And what a consumer of the suite,
 * in whatever context, makes the manager allocate by a call.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hash.h>
#include <linux/kallsyms.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/stacktrace.h>

#include <trace/events/kmem.h>

static char *manager = "rust_rdma_cm";
module_param(manager, charp, 0);
MODULE_PARM_DESC(manager, "the module that is the connection manager");

static ulong seen;
module_param(seen, ulong, 0444);
MODULE_PARM_DESC(seen, "how many of its allocations could wait for something");

static ulong waits;
module_param(waits, ulong, 0644);
MODULE_PARM_DESC(waits, "how many of them for input or output");

static ulong timed;
module_param(timed, ulong, 0644);
MODULE_PARM_DESC(timed, "how many allocations, of whatever kind, its timers made");

/* The number of allocations that are shown. */
#define SHOWN 12
#define DEPTH 96

/* The place of a return address. */
enum {
	/* In the connection manager. */
	MANAGER = 1,
	/* There, in its timers. */
	TIMER = 2,
	/* In a module whose work items are the connection manager's contexts. */
	CONTEXT = 4,
	/* The kernel calls a work item there. */
	CALLER = 8,
	/* In a consumer. */
	CONSUMER = 16,
};

/* The cache of what is known about addresses in code: looking for a symbol takes long. */
#define KNOWN_BITS 12
static struct {
	unsigned long address;
	unsigned int place;
} known[1 << KNOWN_BITS];
static char symbol[KSYM_SYMBOL_LEN];
static DEFINE_RAW_SPINLOCK(lock);

static bool is_in(const char *module, const char *name)
{
	size_t len = strlen(name);

	return !strncmp(module, name, len) && module[len] == ']';
}

static unsigned int place_of(unsigned long address)
{
	static const char * const core[] = { "ib_core", "iw_cm" }, * const consumers[] = { "ibcm", "cmid" };
	unsigned int at = hash_long(address, KNOWN_BITS);
	unsigned int place = 0, i;
	char *module;

	if (known[at].address == address)
		return known[at].place;
	/* The address before it may be the last instruction of a function. */
	sprint_symbol(symbol, address - 1);
	module = strrchr(symbol, '[');
	if (module) {
		module++;
		if (is_in(module, manager)) {
			place = MANAGER | CONTEXT;
			/* Parts of the names that the compiler makes of what cm::timer::Shard does. */
			if (strstr(symbol, "5timer") && strstr(symbol, "5Shard"))
				place |= TIMER;
		}
		for (i = 0; i < ARRAY_SIZE(core); i++)
			if (is_in(module, core[i]))
				place = CONTEXT;
		for (i = 0; i < ARRAY_SIZE(consumers); i++)
			if (is_in(module, consumers[i]))
				place = CONSUMER;
	} else if (!strncmp(symbol, "process_one_work+", strlen("process_one_work+"))) {
		place = CALLER;
	}
	known[at].address = address;
	known[at].place = place;
	return place;
}

static void look(gfp_t flags)
{
	unsigned int depth, i, place, work = 0;
	unsigned long stack[DEPTH];
	bool is_managers = false;
	bool is_work = false;
	bool is_called = false;
	bool may_wait, is_timers;
	unsigned long irq;

	/* A consumer makes its calls while it is loaded. */
	if (!in_task() || !(current->flags & PF_WQ_WORKER || !strcmp(current->comm, "insmod")))
		return;
	depth = stack_trace_save(stack, DEPTH, 2);
	raw_spin_lock_irqsave(&lock, irq);
	for (i = 0; i < depth; i++) {
		place = place_of(stack[i]);
		is_managers |= place & MANAGER;
		is_called |= is_managers && (place & CONSUMER);
		is_work = place & CALLER;
		if (is_work)
			break;
		work = place;
	}
	/* A stack that is too deep to be seen counts. */
	if (current->flags & PF_WQ_WORKER)
		is_managers = is_managers && (!is_work || (work & CONTEXT) || is_called);
	else
		is_managers = is_called;
	is_timers = is_managers && (work & TIMER);
	may_wait = is_managers && (flags & __GFP_DIRECT_RECLAIM);
	seen += may_wait;
	timed += is_timers;
	may_wait = may_wait && (flags & __GFP_IO) && !(current->flags & PF_MEMALLOC_NOIO);
	waits += may_wait;
	if ((may_wait && waits <= SHOWN) || (is_timers && timed <= SHOWN)) {
		pr_info("%s\n", may_wait ? "may wait for input or output:" : "in a timer:");
		for (i = 0; i < depth && i < 16; i++)
			pr_info(" %pS\n", (void *)stack[i]);
	}
	raw_spin_unlock_irqrestore(&lock, irq);
}

static void on_kmalloc(void *data, unsigned long call_site, const void *ptr, size_t bytes_req,
		       size_t bytes_alloc, gfp_t flags, int node)
{
	look(flags);
}

static void on_cache(void *data, unsigned long call_site, const void *ptr, struct kmem_cache *s,
		     gfp_t flags, int node)
{
	look(flags);
}

static int __init reclaim_init(void)
{
	int ret = register_trace_kmalloc(on_kmalloc, NULL);

	if (ret)
		return ret;
	ret = register_trace_kmem_cache_alloc(on_cache, NULL);
	if (ret)
		unregister_trace_kmalloc(on_kmalloc, NULL);
	return ret;
}

static void __exit reclaim_exit(void)
{
	unregister_trace_kmem_cache_alloc(on_cache, NULL);
	unregister_trace_kmalloc(on_kmalloc, NULL);
	tracepoint_synchronize_unregister();
}

module_init(reclaim_init);
module_exit(reclaim_exit);
MODULE_DESCRIPTION("Looks at what a connection manager's allocations may wait for");
MODULE_LICENSE("GPL");
