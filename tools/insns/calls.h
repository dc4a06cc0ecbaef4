/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The calls of a guest's kernel, for the plugins that tell apart by which of them something was done.
 *
 * There is a shadow of each stack of the kernel. A function's frame lies where its return address
 * does, and is over when the stack pointer is above it. A function that was inlined counts as a part
 * of its caller, and instructions on a stack of user space, at the entry to the kernel, count as
 * those of user space.
 */
#ifndef INSNS_CALLS_H
#define INSNS_CALLS_H

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
		uint64_t sp, argument;	/* at the entry of the function; argument if returned is set */
	} frames[DEPTH];
};

/* A power of two above the number of stacks of the kernel, which are as large as they are aligned. */
#define STACKS 65536
#define STACK_SHIFT 14

static struct stack *stacks[STACKS];
static struct node *nodes;
static uint32_t used = 1, room = 1u << 18;
static uint32_t running;		/* the node whose block runs; 0: none of the kernel's */
static uint64_t user;
static bool active;

/* Called when a function returns, if it is set. */
static void (*returned)(const struct frame *frame, uint64_t value);
static void *first_argument, *result;
static void *stack_pointer;
static GByteArray *value;

static bool is_kernel(uint64_t address)
{
	return address >> 63;
}

static uint64_t read_register(void *handle)
{
	uint64_t found;

	g_byte_array_set_size(value, 0);
	qemu_plugin_read_register(handle, value);
	memcpy(&found, value->data, sizeof(found));
	return found;
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

/* Returns the place of the stack that an address is in, which is empty if no stack is known there. */
static struct stack **place_of(uint64_t address)
{
	uint64_t key = address >> STACK_SHIFT;
	unsigned int i = (unsigned int)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 48);

	while (stacks[i] && stacks[i]->key != key)
		i = (i + 1) % STACKS;
	return stacks + i;
}

static struct stack *stack_at(uint64_t sp)
{
	struct stack **place = place_of(sp);

	if (!*place) {
		*place = calloc(1, sizeof(**place));
		if (!*place)
			abort();
		(*place)->key = sp >> STACK_SHIFT;
	}
	return *place;
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
		s->frames[s->depth++] = (struct frame){
			node, sp, returned ? read_register(first_argument) : 0,
		};
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
	sp = is_kernel(block->address) ? read_register(stack_pointer) : 0;
	if (!is_kernel(sp)) {
		user += block->insns;
		running = 0;
		return;
	}
	s = stack_at(sp);
	previous = s->previous;
	while (s->depth && s->frames[s->depth - 1].sp < sp) {
		s->depth--;
		if (returned && previous && previous->end == RETURN)
			returned(s->frames + s->depth, read_register(result));
	}
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
	running = top(s);
	nodes[running].self += block->insns;
	s->previous = block;
}

/* Begins a stretch, and forgets what the one before has seen. */
static void begin_calls(unsigned int cpu, void *unused)
{
	(void)cpu;
	(void)unused;
	used = 1;
	memset(nodes, 0, sizeof(*nodes));
	user = 0;
	running = 0;
	for (unsigned int i = 0; i < STACKS; i++)
		if (stacks[i]) {
			stacks[i]->depth = 0;
			stacks[i]->previous = NULL;
		}
	active = true;
}

/* Ends a stretch. Returns the file for its lines, which has one for each function: see tree.c. */
static FILE *end_calls(void)
{
	FILE *file = open_stretch();

	active = false;
	for (uint32_t i = 1; i < used; i++)
		fprintf(file, "%" PRIu32 " %" PRIu32 " %" PRIx64 " %" PRIu64 " %" PRIu64 "\n", i,
			nodes[i].parent, nodes[i].entry, nodes[i].self, nodes[i].calls);
	return file;
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

static void *register_named(const char *name)
{
	const GArray *registers = qemu_plugin_get_registers();
	const struct register_name *names = (const void *)registers->data;

	for (unsigned int i = 0; i < registers->len; i++)
		if (!strcmp(names[i].name, name))
			return names[i].handle;
	fprintf(stderr, "there is no register %s\n", name);
	exit(1);
}

/* Prepares what follows the calls of a CPU. */
static void init_calls(qemu_plugin_id_t id, unsigned int cpu)
{
	(void)id;
	(void)cpu;
	value = g_byte_array_new();
	stack_pointer = register_named("rsp");
	first_argument = register_named("rdi");
	result = register_named("rax");
}

/* Follows the calls of a block. */
static void watch_calls(struct qemu_plugin_tb *tb)
{
	struct block *block = calloc(1, sizeof(*block));

	if (!block)
		abort();
	block->address = qemu_plugin_tb_vaddr(tb);
	block->next = block_end(tb);
	block->insns = (uint32_t)qemu_plugin_tb_n_insns(tb);
	block->end = end_of(last_insn(tb));
	qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, READ_REGISTERS, block);
}

/* Returns 0, or 1 if it cannot. */
static int install_calls(qemu_plugin_id_t id, int argc, char **argv,
			 void (*init)(qemu_plugin_id_t id, unsigned int cpu),
			 void (*translate)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb))
{
	if (!set_path(argc, argv))
		return 1;
	nodes = calloc(room, sizeof(*nodes));
	if (!nodes)
		return 1;
	qemu_plugin_register_vcpu_init_cb(id, init);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	return 0;
}

#endif
