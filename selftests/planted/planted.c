// SPDX-License-Identifier: GPL-2.0
/*
 * A module that does what is forbidden, for a kernel that finds out: one thing for each value of
 * its parameter. Each is contained; the kernel goes on.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

static char *what = "";
module_param(what, charp, 0);
MODULE_PARM_DESC(what, "what to do");

static void warning(void)
{
	WARN(1, "planted\n");
}

static void out_of_bounds(void)
{
	volatile char *p = kmalloc(24, GFP_KERNEL);

	if (p)
		p[24] = 1;
	kfree((void *)p);
}

static void use_after_free(void)
{
	volatile char *p = kmalloc(24, GFP_KERNEL);

	kfree((void *)p);
	if (p)
		p[0];
}

static void double_free(void)
{
	volatile char *p = kmalloc(24, GFP_KERNEL);

	kfree((void *)p);
	OPTIMIZER_HIDE_VAR(p);
	kfree((void *)p);
}

static void sleep_in_atomic(void)
{
	static DEFINE_SPINLOCK(lock);

	spin_lock(&lock);
	might_sleep();
	spin_unlock(&lock);
}

static void at_last(struct timer_list *t)
{
}

static void free_active_timer(void)
{
	struct timer_list *t = kmalloc(sizeof(*t), GFP_KERNEL);

	if (!t)
		return;
	timer_setup(t, at_last, 0);
	mod_timer(t, jiffies + 100 * HZ);
	/* Found, and stopped, by DEBUG_OBJECTS. */
	kfree(t);
}

static void refcount(void)
{
	refcount_t count = REFCOUNT_INIT(0);

	refcount_inc(&count);
}

static void leak(void)
{
	void *p = NULL;

	for (int i = 0; i < 10; i++)
		p = kmalloc(4000, GFP_KERNEL);
	OPTIMIZER_HIDE_VAR(p);
}

static void hang(void)
{
	/* The detector looks every 10 s, and needs three looks. */
	schedule_timeout_uninterruptible(35 * HZ);
}

static void lock_order(void)
{
	static DEFINE_MUTEX(a);
	static DEFINE_MUTEX(b);

	mutex_lock(&a);
	mutex_lock(&b);
	mutex_unlock(&b);
	mutex_unlock(&a);
	mutex_lock(&b);
	mutex_lock(&a);
	mutex_unlock(&a);
	mutex_unlock(&b);
}

#define KIND(name) { #name, name }
static const struct {
	const char *name;
	void (*function)(void);
} kinds[] = {
	KIND(warning), KIND(out_of_bounds), KIND(use_after_free), KIND(double_free),
	KIND(sleep_in_atomic), KIND(free_active_timer), KIND(refcount), KIND(leak), KIND(hang),
	KIND(lock_order),
};

static int __init planted_init(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strcmp(kinds[i].name, what) == 0) {
			kinds[i].function();
			return 0;
		}
	return -EINVAL;
}
module_init(planted_init);

static void __exit planted_exit(void)
{
}
module_exit(planted_exit);

MODULE_DESCRIPTION("Errors that the debug kernel has to find");
MODULE_LICENSE("GPL");
