// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin of QEMU that counts the instructions of a guest's kernel exactly, by the calls that led
 * to them.
 *
 * A line of a stretch is "NODE PARENT ADDRESS SELF CALLS": a function that was entered at ADDRESS
 * so often from the function of the node PARENT, or from nowhere known if that is 0, and the
 * instructions of its own. Before the last line stands "user N", the instructions of user space.
 *
 * There is a shadow of each stack of the kernel. A function's frame lies where its return address
 * does, and is over when the stack pointer is above it. A function that was inlined counts as a part
 * of its caller, and instructions on a stack of user space, at the entry to the kernel, count as
 * those of user space.
 */
#include "plugin.h"

/* The parts of GLib that are used here, and the description of a register. */
typedef struct { uint8_t *data; unsigned int len; } GByteArray;
typedef struct { char *data; unsigned int len; } GArray;
struct register_name { void *handle; const char *name, *feature; };

extern GByteArray *g_byte_array_new(void);
extern GByteArray *g_byte_array_set_size(GByteArray *array, unsigned int length);
extern GArray *qemu_plugin_get_registers(void);
extern int qemu_plugin_read_register(void *handle, GByteArray *value);
extern void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id,
		void (*init)(qemu_plugin_id_t id, unsigned int cpu));

/* The end of a block. */
enum end { ELSE, CALL, RETURN, JUMP };

struct block {
	uint64_t address, next;		/* next is where a call returns to */
	uint32_t insns;
	enum end end;
	bool entered;			/* a call has come here */
};

struct node {
	uint32_t parent, child, sibling;
	uint64_t entry, self, calls;
};

#define DEPTH 256

struct stack {
	uint64_t key;
	const struct block *previous;
	uint32_t depth;
	struct frame {
		uint32_t node;
		uint64_t sp;		/* at the entry of the function */
	} frames[DEPTH];
};

/* A power of two above the number of stacks of the kernel, which are as large as they are aligned. */
#define STACKS 65536
#define STACK_SHIFT 14

static struct stack *stacks[STACKS];
static struct node *nodes;
static uint32_t used = 1, room = 1u << 18;
static uint64_t user;
static bool active;
static void *stack_pointer;
static GByteArray *value;

static bool is_kernel(uint64_t address)
{
	return address >> 63;
}

static uint32_t child_of(uint32_t parent, uint64_t entry)
{
	for (uint32_t i = nodes[parent].child; i; i = nodes[i].sibling)
		if (nodes[i].entry == entry)
			return i;
	if (used == room) {
		room *= 2;
		nodes = realloc(nodes, room * sizeof(*nodes));
		if (!nodes)
			abort();
	}
	nodes[used] = (struct node){ .parent = parent, .entry = entry,
				     .sibling = nodes[parent].child };
	nodes[parent].child = used;
	return used++;
}

static struct stack *stack_at(uint64_t sp)
{
	uint64_t key = sp >> STACK_SHIFT;
	unsigned int i = (unsigned int)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 48);

	while (stacks[i] && stacks[i]->key != key)
		i = (i + 1) % STACKS;
	if (!stacks[i]) {
		stacks[i] = calloc(1, sizeof(*stacks[i]));
		if (!stacks[i])
			abort();
		stacks[i]->key = key;
	}
	return stacks[i];
}

/* The function at the top of the stack. */
static uint32_t top(const struct stack *s)
{
	return s->depth ? s->frames[s->depth - 1].node : 0;
}

static void push(struct stack *s, uint64_t entry, uint64_t sp)
{
	uint32_t node = child_of(top(s), entry);

	nodes[node].calls++;
	if (s->depth < DEPTH)
		s->frames[s->depth++] = (struct frame){ node, sp };
}

/* Another function goes on in the place of the one at the top, and returns to its caller. */
static void replace(struct stack *s, uint64_t entry)
{
	uint64_t sp = s->frames[--s->depth].sp;

	push(s, entry, sp);
}

static void executed(unsigned int cpu, void *data)
{
	struct block *block = data;
	const struct block *previous;
	struct stack *s;
	uint64_t sp;
	bool at_entry;

	(void)cpu;
	if (!active)
		return;
	if (!is_kernel(block->address)) {
		user += block->insns;
		return;
	}
	g_byte_array_set_size(value, 0);
	qemu_plugin_read_register(stack_pointer, value);
	memcpy(&sp, value->data, sizeof(sp));
	if (!is_kernel(sp)) {
		user += block->insns;
		return;
	}
	s = stack_at(sp);
	previous = s->previous;
	while (s->depth && s->frames[s->depth - 1].sp < sp)
		s->depth--;
	at_entry = s->depth && s->frames[s->depth - 1].sp == sp;
	if (previous && previous->end == CALL && block->address != previous->next) {
		if (at_entry)
			s->depth--;
		push(s, block->address, sp);
		block->entered = true;
	} else if (at_entry && previous && previous->end == RETURN) {
		/* A thunk has been called that returns to the function that is wanted. */
		replace(s, block->address);
	} else if (at_entry && previous && previous->end == JUMP && block->entered &&
		   nodes[top(s)].entry != block->address) {
		/* The last that a function does is a call. */
		replace(s, block->address);
	} else if (!s->depth) {
		push(s, block->address, sp);
	}
	nodes[top(s)].self += block->insns;
	s->previous = block;
}

static void begin(unsigned int cpu, void *unused)
{
	(void)cpu;
	(void)unused;
	used = 1;
	memset(nodes, 0, sizeof(*nodes));
	user = 0;
	for (unsigned int i = 0; i < STACKS; i++)
		if (stacks[i]) {
			stacks[i]->depth = 0;
			stacks[i]->previous = NULL;
		}
	active = true;
}

static void end(unsigned int cpu, void *unused)
{
	FILE *file = open_stretch();

	(void)cpu;
	(void)unused;
	active = false;
	for (uint32_t i = 1; i < used; i++)
		fprintf(file, "%" PRIu32 " %" PRIu32 " %" PRIx64 " %" PRIu64 " %" PRIu64 "\n", i,
			nodes[i].parent, nodes[i].entry, nodes[i].self, nodes[i].calls);
	fprintf(file, "user %" PRIu64 "\n", user);
	close_stretch(file);
}

/* Returns the end of the block whose last instruction this is. */
static enum end end_of(const struct qemu_plugin_insn *insn)
{
	uint8_t data[16] = { 0 };
	const uint8_t *opcode = data;
	size_t size = qemu_plugin_insn_data(insn, data, sizeof(data));

	/* Segments, repetition and the extension of registers. */
	while (size && (*opcode == 0x2e || *opcode == 0x3e || *opcode == 0xf2 || *opcode == 0xf3 ||
			(*opcode & 0xf0) == 0x40)) {
		opcode++;
		size--;
	}
	switch (*opcode) {
	case 0xe8:
		return CALL;
	case 0xc2:
	case 0xc3:
		return RETURN;
	case 0xe9:
	case 0xeb:
		return JUMP;
	case 0xff:
		switch (opcode[1] >> 3 & 7) {
		case 2:
			return CALL;
		case 4:
			return JUMP;
		}
	}
	return ELSE;
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	struct block *block = calloc(1, sizeof(*block));

	(void)id;
	if (!block)
		abort();
	block->address = qemu_plugin_tb_vaddr(tb);
	block->next = block_end(tb);
	block->insns = (uint32_t)qemu_plugin_tb_n_insns(tb);
	block->end = end_of(last_insn(tb));
	watch_marks(tb, begin, end);
	qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, READ_REGISTERS, block);
}

static void init(qemu_plugin_id_t id, unsigned int cpu)
{
	const GArray *registers = qemu_plugin_get_registers();
	const struct register_name *names = (const void *)registers->data;

	(void)id;
	(void)cpu;
	value = g_byte_array_new();
	for (unsigned int i = 0; i < registers->len; i++)
		if (!strcmp(names[i].name, "rsp"))
			stack_pointer = names[i].handle;
	if (!stack_pointer) {
		fprintf(stderr, "the stack pointer cannot be read\n");
		exit(1);
	}
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
	(void)info;
	if (!set_path(argc, argv))
		return 1;
	nodes = calloc(room, sizeof(*nodes));
	if (!nodes)
		return 1;
	qemu_plugin_register_vcpu_init_cb(id, init);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	return 0;
}
