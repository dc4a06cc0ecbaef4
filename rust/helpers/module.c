// SPDX-License-Identifier: GPL-2.0

#include <linux/kobject.h>
#include <linux/module.h>

#include "rust_rdma_cm.h"

/*
 * Looks a module up in the kset of all modules, since find_module() is not exported. Each module
 * has a kobject with its name there for as long as it is loaded. This module does not if it is
 * built in.
 */
bool rust_rdma_module_is_loaded(const struct module *self, const char *name)
{
#ifdef MODULE
	struct kobject *kobj;

	if (!self->mkobj.kobj.kset)
		return false;
	kobj = kset_find_obj(self->mkobj.kobj.kset, name);
	if (!kobj)
		return false;
	kobject_put(kobj);
	return true;
#else
	return false;
#endif
}
