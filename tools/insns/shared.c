// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin of QEMU that tells which lines of memory a guest's kernel writes, by the calls that led to
 * the stores.
 *
 * Lines of a stretch are those of tree.c without the last, "percpu ADDRESS", what the kernel adds to
 * the address of a per-CPU variable, and "store NODE LINE" for each line of 64 bytes that the function
 * of a node has written. Stacks of the kernel are left out, and what an instruction stores relative
 * to the register GS, which are per-CPU variables. "object NODE ARGUMENT ADDRESS" is a call of the
 * node's function that had a pointer as its first argument and has returned another one, as an
 * allocator that was given a cache.
 */
#include "calls.h"

extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
		void (*accessed)(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data),
		enum registers registers, enum access access, void *data);

#define LINE_SHIFT 6

/* A power of two above the number of stores that differ in a stretch. */
#define STORES (1u << 22)

static struct store {
	uint64_t line;
	uint32_t node, stretch;		/* of the stretch, counted from 1 */
} *stores;
static unsigned int stored;
static void *percpu;

/* More than there are in a stretch. */
#define OBJECTS (1u << 20)

static struct object {
	uint64_t cache, address;
	uint32_t node;
} *objects;
static unsigned int made;

static void note_object(const struct frame *frame, uint64_t value)
{
	if (!is_kernel(frame->argument) || !is_kernel(value) || frame->argument == value)
		return;
	if (made == OBJECTS) {
		fprintf(stderr, "stretch %u has too many objects\n", stretch);
		exit(1);
	}
	objects[made++] = (struct object){ frame->argument, value, frame->node };
}

static void accessed(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	uint64_t line = address >> LINE_SHIFT, hash;
	struct store *s;

	(void)cpu;
	(void)info;
	(void)data;
	if (!active || !running || !is_kernel(address))
		return;
	hash = (line ^ (uint64_t)running << 40) * UINT64_C(0x9e3779b97f4a7c15);
	s = stores + (hash >> 42);
	while (s->stretch == stretch + 1) {
		if (s->line == line && s->node == running)
			return;
		if (++s == stores + STORES)
			s = stores;
	}
	if (++stored > STORES / 4 * 3) {
		fprintf(stderr, "stretch %u has too many stores\n", stretch);
		exit(1);
	}
	*s = (struct store){ line, running, stretch + 1 };
}

static void begin(unsigned int cpu, void *unused)
{
	stored = made = 0;
	begin_calls(cpu, unused);
}

static void end(unsigned int cpu, void *unused)
{
	FILE *file = end_calls();

	(void)cpu;
	(void)unused;
	/* User space has its own GS, and the kernel's lies in wait. */
	fprintf(file, "percpu %" PRIx64 "\n", read_register(percpu));
	for (const struct store *s = stores; s < stores + STORES; s++)
		if (s->stretch == stretch + 1 && !*place_of(s->line << LINE_SHIFT))
			fprintf(file, "store %" PRIu32 " %" PRIx64 "\n", s->node, s->line);
	for (unsigned int i = 0; i < made; i++)
		fprintf(file, "object %" PRIu32 " %" PRIx64 " %" PRIx64 "\n", objects[i].node,
			objects[i].cache, objects[i].address);
	close_stretch(file);
}

/* Returns whether the address of an instruction's operand is relative to GS. */
static bool is_percpu(const struct qemu_plugin_insn *insn)
{
	uint8_t data[16] = { 0 };
	size_t size = qemu_plugin_insn_data(insn, data, sizeof(data));

	for (size_t i = 0; i < size; i++)
		if (data[i] == 0x65)
			return true;
		else if (data[i] != 0xf0 && data[i] != 0xf2 && data[i] != 0xf3 && data[i] != 0x66)
			break;
	return false;
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	watch_marks(tb, begin, end);
	watch_calls(tb);
	if (!is_kernel(qemu_plugin_tb_vaddr(tb)))
		return;
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		if (!is_percpu(insn))
			qemu_plugin_register_vcpu_mem_cb(insn, accessed, NO_REGISTERS, WRITES, NULL);
	}
}

static void init(qemu_plugin_id_t id, unsigned int cpu)
{
	init_calls(id, cpu);
	percpu = register_named("k_gs_base");
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
	(void)info;
	stores = calloc(STORES, sizeof(*stores));
	objects = calloc(OBJECTS, sizeof(*objects));
	returned = note_object;
	return stores && objects ? install_calls(id, argc, argv, init, translate) : 1;
}
