// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin of QEMU that counts what a guest would miss in caches, by a model.
 *
 * A line of a stretch is "ADDRESS LENGTH INSNS REPEATED D1 I1 D2 I2", for each block of code that
 * ran: its instructions, those that are repetitions of a string instruction, and the lines of data
 * and of code that were missed in the first cache, and in the second.
 *
 * Lines have 64 bytes, and of a set the one that was used the longest time ago is replaced. The
 * second cache has code and data. There are no prefetching, no TLB, no store buffer and one
 * processor, so that lines are not taken by another.
 */
#include "plugin.h"

#define LINE_SHIFT 6

extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
		void (*accessed)(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data),
		enum registers registers, enum access access, void *data);

struct cache {
	unsigned int sets, ways, clock;
	uint64_t *lines;
	unsigned int *used;
};

/* 48 kB of data, 32 kB of code, and 2 MB: a core of a server since 2019 or so. */
static struct cache data1 = { 64, 12, 0, NULL, NULL }, code1 = { 64, 8, 0, NULL, NULL },
	both2 = { 2048, 16, 0, NULL, NULL };

static struct block {
	struct block *next;
	uint64_t address, last;
	uint32_t insns;
	bool repeated;
	struct {
		uint64_t insns, repeated, data1, code1, data2, code2;
	} count;
} *blocks;
static bool active;

static bool make(struct cache *cache)
{
	cache->lines = calloc((size_t)cache->sets * cache->ways, sizeof(*cache->lines));
	cache->used = calloc((size_t)cache->sets * cache->ways, sizeof(*cache->used));
	return cache->lines && cache->used;
}

/* Uses a line; returns whether it was missed. */
static bool misses(struct cache *cache, uint64_t line)
{
	size_t set = line % cache->sets * cache->ways;
	uint64_t *lines = cache->lines + set;
	unsigned int *used = cache->used + set, oldest = 0;

	cache->clock++;
	for (unsigned int i = 0; i < cache->ways; i++) {
		if (lines[i] == line) {
			used[i] = cache->clock;
			return false;
		}
		if (used[i] < used[oldest])
			oldest = i;
	}
	lines[oldest] = line;
	used[oldest] = cache->clock;
	return true;
}

static void accessed(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	struct block *block = data;
	uint64_t line = address >> LINE_SHIFT;

	(void)cpu;
	(void)info;
	if (active && misses(&data1, line)) {
		block->count.data1++;
		block->count.data2 += misses(&both2, line);
	}
}

static void executed(unsigned int cpu, void *data)
{
	struct block *block = data;

	(void)cpu;
	if (!active)
		return;
	if (block->repeated)
		block->count.repeated++;
	else
		block->count.insns += block->insns;
	for (uint64_t line = block->address >> LINE_SHIFT; line <= block->last >> LINE_SHIFT; line++)
		if (misses(&code1, line)) {
			block->count.code1++;
			block->count.code2 += misses(&both2, line);
		}
}

static void begin(unsigned int cpu, void *unused)
{
	(void)cpu;
	(void)unused;
	for (struct block *block = blocks; block; block = block->next)
		memset(&block->count, 0, sizeof(block->count));
	active = true;
}

static void end(unsigned int cpu, void *unused)
{
	FILE *file = open_stretch();

	(void)cpu;
	(void)unused;
	active = false;
	for (const struct block *block = blocks; block; block = block->next)
		if (block->count.insns || block->count.repeated)
			fprintf(file, "%" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
				" %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
				block->address, block->last - block->address + 1, block->count.insns,
				block->count.repeated, block->count.data1, block->count.code1,
				block->count.data2, block->count.code2);
	close_stretch(file);
}

/*
 * Returns true for a string instruction with a prefix for repetition, of which QEMU executes each
 * repetition as a block of its own.
 */
static bool is_repeated(const struct qemu_plugin_tb *tb)
{
	uint8_t data[3] = { 0 };
	const uint8_t *opcode = data + 1;

	if (qemu_plugin_tb_n_insns(tb) != 1)
		return false;
	qemu_plugin_insn_data(qemu_plugin_tb_get_insn(tb, 0), data, sizeof(data));
	if ((*opcode & 0xf0) == 0x40)
		opcode++;
	/* movs and stos */
	return data[0] == 0xf3 && ((*opcode & 0xfe) == 0xa4 || (*opcode & 0xfe) == 0xaa);
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t insns = qemu_plugin_tb_n_insns(tb);
	struct block *block = calloc(1, sizeof(*block));

	(void)id;
	if (!block)
		abort();
	block->address = qemu_plugin_tb_vaddr(tb);
	block->last = block_end(tb) - 1;
	block->insns = (uint32_t)insns;
	block->repeated = is_repeated(tb);
	block->next = blocks;
	blocks = block;
	for (size_t i = 0; i < insns; i++)
		qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), accessed, NO_REGISTERS,
						 READS | WRITES, block);
	watch_marks(tb, begin, end);
	qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, NO_REGISTERS, block);
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
	(void)info;
	if (!set_path(argc, argv) || !make(&data1) || !make(&code1) || !make(&both2))
		return 1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	return 0;
}
