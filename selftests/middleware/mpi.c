// SPDX-License-Identifier: GPL-2.0
/*
 * Ranks of MPI that give each other data: each to each, small and large messages, then a sum.
 *
 *	mpi [ROUNDS]
 *
 * Rank 0 prints "done" if all of it arrived as it was sent.
 */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

/* An eager message, and one that is fetched by RDMA. */
static const int sizes[] = { 8, 1000, 200000 };

#define LARGEST 200000

static int rank, ranks;

static unsigned char byte(int from, int to, int round, int i)
{
	return from * 31 + to * 17 + round * 7 + i + (i >> 8);
}

static void fill(unsigned char *data, int to, int round, int size)
{
	for (int i = 0; i < size; i++)
		data[i] = byte(rank, to, round, i);
}

static void verify(const char *what, const unsigned char *data, int from, int round, int size)
{
	for (int i = 0; i < size; i++) {
		if (data[i] == byte(from, rank, round, i))
			continue;
		fprintf(stderr, "rank %d, %s from %d, round %d: byte %d of %d is wrong\n", rank, what, from, round,
			i, size);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

/* In each step all send and receive at once. */
static void messages(int round, int size)
{
	static unsigned char out[LARGEST], in[LARGEST];

	for (int step = 1; step < ranks; step++) {
		int to = (rank + step) % ranks, from = (rank + ranks - step) % ranks;
		MPI_Status status;
		int count;

		fill(out, to, round, size);
		MPI_Sendrecv(out, size, MPI_BYTE, to, round, in, size, MPI_BYTE, from, round, MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, MPI_BYTE, &count);
		if (count != size) {
			fprintf(stderr, "rank %d: %d bytes of %d\n", rank, count, size);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
		verify("message", in, from, round, size);
	}
}

static void collective(int round)
{
	long sum, mine = rank + round;

	MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (sum != (long)ranks * (ranks - 1) / 2 + (long)ranks * round) {
		fprintf(stderr, "rank %d: sum %ld\n", rank, sum);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 5;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int round = 0; round < rounds; round++) {
		for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			messages(round, sizes[i]);
		collective(round);
	}
	if (!rank)
		printf("done: %d ranks\n", ranks);
	MPI_Finalize();
	return 0;
}
