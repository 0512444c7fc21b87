// SPDX-License-Identifier: MIT
/*
 * Makes a pipe that behaves as its first argument says, passes a few lines
 * through it, and prints the pipe's config and what it counted:
 *
 *	own-pipe tail_update=wait_lock,times=full
 *
 * Without an argument the pipe takes the defaults as they stand in
 * /sys/class/misc/altpipe/knobs.
 */
#include <altpipe.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static void die(const char *what)
{
	fprintf(stderr, "own-pipe: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

/* As pipe2(2) with O_CLOEXEC, but for the config. */
static void make_pipe(int end[2], const char *config)
{
	struct altpipe_create create = {
		.size = sizeof(create),
		.flags = O_CLOEXEC,
		.config = (uintptr_t)config,
		.config_len = strlen(config),
	};
	int control = open("/dev/altpipe", O_RDWR | O_CLOEXEC);

	if (control < 0)
		die("/dev/altpipe");
	if (ioctl(control, ALTPIPE_IOC_VERSION) != ALTPIPE_ABI_VERSION) {
		fputs("own-pipe: built for another ABI version\n", stderr);
		exit(EXIT_FAILURE);
	}
	if (ioctl(control, ALTPIPE_IOC_CREATE, &create))
		die(config);
	/* The pipe does not need the device any more. */
	close(control);
	end[0] = create.fd[0];
	end[1] = create.fd[1];
}

static void pass_lines(const int end[2])
{
	static const char line[] = "a line of text\n";
	char got[2 * sizeof(line)];
	ssize_t count;
	int i;

	for (i = 0; i < 2; i++) {
		if (write(end[1], line, strlen(line)) < 0)
			die("write");
	}
	/* Both lines: small writes share a page, and one read takes it. */
	count = read(end[0], got, sizeof(got));
	if (count < 0)
		die("read");
	printf("read:   %zd bytes of %zu\n", count, 2 * strlen(line));
}

static void print_config(int end)
{
	char text[1024];
	struct altpipe_text where = {
		.buf = (uintptr_t)text,
		.len = sizeof(text),
	};
	int len = ioctl(end, ALTPIPE_IOC_GET_CONFIG, &where);

	if (len < 0)
		die("ALTPIPE_IOC_GET_CONFIG");
	/* What differs from the newest kernel's behaviour; maybe nothing. */
	printf("config: %.*s\n", len, text);
}

static void print_count(const char *what, __u64 count)
{
	printf(" %llu %s", (unsigned long long)count, what);
}

static void print_stats(int end)
{
	struct altpipe_stats stats = { .size = sizeof(stats) };

	if (ioctl(end, ALTPIPE_IOC_GET_STATS, &stats))
		die("ALTPIPE_IOC_GET_STATS");
	printf("counts:");
	print_count("writes,", stats.writes);
	print_count("merges,", stats.merges);
	print_count("reads,", stats.reads);
	print_count("tail locks,", stats.tail_locks);
	print_count("time updates\n", stats.time_updates);
}

int main(int argc, char **argv)
{
	int end[2];

	make_pipe(end, argc > 1 ? argv[1] : "");
	print_config(end[0]);
	pass_lines(end);
	print_stats(end[0]);
	return EXIT_SUCCESS;
}
