// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What a program sees of pipe, pipe2, popen, pclose, fclose and fcntl: each
 * case prints what came of its calls, and nothing that two runs may differ in.
 * Run it twice, on native pipes and on altpipe's: the outputs must be equal.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef F_SETPIPE_SZ
#define F_SETPIPE_SZ 1031
#define F_GETPIPE_SZ 1032
#endif

static int number;

/* One line of output: the case's name, and what came of it. */
static void say(const char *name, const char *format, ...)
{
	va_list args;

	printf("%3d %s: ", ++number, name);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

static const char *name_of(int error)
{
	return error ? strerrorname_np(error) : "0";
}

static int count_open(void)
{
	int count = 0;
	DIR *dir = opendir("/proc/self/fd");

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

/* Does a byte that goes in come out? */
static const char *works(const int ends[2])
{
	char in = 'a', out = 0;

	if (write(ends[1], &in, 1) != 1 || read(ends[0], &out, 1) != 1 || in != out)
		return "broken";
	return "works";
}

static void close_both(const int ends[2])
{
	close(ends[0]);
	close(ends[1]);
}

static void bad_addresses(void)
{
	long page = sysconf(_SC_PAGESIZE);
	char *three = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	struct {
		const char *name;
		void *address;
	} cases[] = {
		{ "null", NULL },
		{ "unmapped", three + 2 * page },
		{ "read only", three + page },
		{ "crosses into read only", three + page - 4 },
		{ "last bytes before it", three + page - 8 },
		{ "odd", three + 1 },
		{ "code", (void *)bad_addresses },
		{ "of the kernel", (void *)0xffff888000000000 },
		{ "not canonical", (void *)0x8000000000000000 },
		{ "top", (void *)-4 },
	};
	unsigned int i;

	mprotect(three + page, page, PROT_READ);
	munmap(three + 2 * page, page);
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int before = count_open(), answer, again, error, after;
		int ends[2];

		errno = 0;
		answer = pipe2(cases[i].address, O_CLOEXEC);
		if (answer == 0) {
			memcpy(ends, cases[i].address, sizeof(ends));
			say(cases[i].name, "%s", works(ends));
			close_both(ends);
			continue;
		}
		error = errno;
		after = count_open();
		errno = 0;
		again = pipe(cases[i].address);
		say(cases[i].name, "%d %s leaks %d; pipe %d %s", answer, name_of(error),
		    after - before, again, name_of(errno));
	}
}

static void flags(void)
{
	int bit, answer;

	for (bit = 0; bit < 32; bit++) {
		int ends[2] = { -7, -8 };
		int before = count_open();

		errno = 0;
		answer = pipe2(ends, 1U << bit);
		if (answer == 0) {
			say("flag", "bit %d fd %x %x fl %x %x %s", bit, fcntl(ends[0], F_GETFD),
			    fcntl(ends[1], F_GETFD), fcntl(ends[0], F_GETFL),
			    fcntl(ends[1], F_GETFL), works(ends));
			close_both(ends);
		} else {
			say("flag", "bit %d %s ends %d %d leaks %d", bit, name_of(errno), ends[0],
			    ends[1], count_open() - before);
		}
	}
	errno = 0;
	answer = pipe2(NULL, 1);
	say("bad flag and bad address", "%d %s", answer, name_of(errno));
}

static void fill_up(int leave)
{
	struct rlimit limit = { 40, 40 };
	int fd;

	setrlimit(RLIMIT_NOFILE, &limit);
	while ((fd = open("/dev/null", O_RDONLY)) >= 0)
		;
	for (fd = 0; fd < leave; fd++)
		close(10 + 3 * fd);
}

static void full_table(void)
{
	int leave;

	for (leave = 0; leave < 6; leave++) {
		pid_t child;

		fflush(stdout);
		number++;
		child = fork();
		if (child == 0) {
			int ends[2] = { -1, -1 };
			int answer, error;

			fill_up(leave);
			errno = 0;
			answer = pipe(ends);
			error = errno;
			number--;
			say("full table", "%d free: %d %s ends %d %d", leave, answer,
			    name_of(error), ends[0], ends[1]);
			/* With one left that is not taken, a file can still be opened. */
			errno = 0;
			answer = open("/dev/null", O_RDONLY);
			printf("    then open: %d %s;", answer, name_of(errno));
			errno = 0;
			answer = pipe(NULL);
			printf(" pipe(NULL): %d %s\n", answer, name_of(errno));
			fflush(stdout);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
}

static void numbers(void)
{
	static const int closed[][3] = { { 0, -1, -1 }, { 0, 1, -1 }, { 0, 2, -1 }, { 1, 2, -1 },
					 { 0, 1, 2 }, { 5, 7, -1 }, { 0, 6, -1 } };
	unsigned int i;
	int out;

	for (i = 0; i < sizeof(closed) / sizeof(*closed); i++) {
		pid_t child;

		fflush(stdout);
		number++;
		child = fork();
		if (child == 0) {
			int ends[2], j;

			out = fcntl(1, F_DUPFD, 30);
			for (j = 3; j < 10; j++)
				dup2(2, j);
			for (j = 0; j < 3; j++)
				if (closed[i][j] >= 0)
					close(closed[i][j]);
			pipe(ends);
			dprintf(out, "    ends: %d %d %s fd %d\n", ends[0], ends[1],
				works(ends), fcntl(ends[0], F_GETFD));
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
}

static void kept_errno(void)
{
	int ends[2];
	FILE *file;

	errno = 4321;
	pipe(ends);
	say("errno after pipe", "%d", errno);
	errno = 4321;
	fcntl(ends[0], F_GETPIPE_SZ);
	say("errno after F_GETPIPE_SZ", "%d", errno);
	close_both(ends);
	errno = 4321;
	file = popen(":", "r");
	say("errno after popen", "%d", errno);
	errno = 4321;
	pclose(file);
	say("errno after pclose", "%d", errno);
}

static void both_fcntl(const char *name, int fd, int cmd, unsigned long arg)
{
	int one, two, error;

	errno = 0;
	one = fcntl(fd, cmd, arg);
	error = errno;
	errno = 0;
	two = fcntl64(fd, cmd, arg);
	say(name, "%d %s, %d %s", one, name_of(error), two, name_of(errno));
}

static void sizes(void)
{
	static const unsigned long wanted[] = { 0, 1, 4096, 4097, 65536, 100000, 1 << 20,
		1UL << 31, (1UL << 31) + 1, ULONG_MAX, (1UL << 32) + 4096 };
	char data[4096] = "";
	struct flock lock = { .l_type = F_WRLCK };
	struct flock found = { .l_type = F_WRLCK };
	int ends[2], file, copy;
	unsigned int i;

	pipe(ends);
	both_fcntl("size", ends[0], F_GETPIPE_SZ, 0);
	for (i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		both_fcntl("set size", ends[i % 2], F_SETPIPE_SZ, wanted[i]);
		both_fcntl("is", ends[1 - i % 2], F_GETPIPE_SZ, 0);
	}
	fcntl(ends[0], F_SETPIPE_SZ, 65536);
	for (i = 0; i < 8; i++)
		write(ends[1], data, sizeof(data));
	both_fcntl("shrink below what is in it", ends[0], F_SETPIPE_SZ, 4096);
	both_fcntl("shrink to what is in it", ends[0], F_SETPIPE_SZ, 32768);

	both_fcntl("F_GETFD", ends[0], F_GETFD, 0);
	both_fcntl("F_SETFD", ends[0], F_SETFD, FD_CLOEXEC);
	both_fcntl("F_GETFD", ends[0], F_GETFD, 0);
	both_fcntl("F_SETFL", ends[0], F_SETFL, O_NONBLOCK);
	both_fcntl("F_GETFL", ends[0], F_GETFL, 0);
	both_fcntl("F_SETOWN", ends[0], F_SETOWN, getpgrp() * -1UL);
	both_fcntl("F_GETSIG", ends[0], F_GETSIG, 0);
	both_fcntl("unknown", ends[0], 9999, 0);
	both_fcntl("F_GETPIPE_SZ of no pipe", 2, F_GETPIPE_SZ, 0);
	both_fcntl("F_GETLK bad address", ends[0], F_GETLK, 8);
	copy = fcntl(ends[0], F_DUPFD_CLOEXEC, 20);
	say("F_DUPFD_CLOEXEC", "%d %d %d", copy, fcntl(copy, F_GETFD), fcntl(copy, F_GETPIPE_SZ));
	say("F_GETOWN", "%d", fcntl(ends[0], F_GETOWN) == -getpgrp());
	close_both(ends);
	both_fcntl("closed", ends[0], F_GETPIPE_SZ, 0);
	both_fcntl("closed", ends[0], F_SETPIPE_SZ, 4096);
	both_fcntl("negative", -1, F_GETPIPE_SZ, 0);

	file = open("/tmp", O_RDWR | O_TMPFILE, 0600);
	both_fcntl("F_GETPIPE_SZ of a file", file, F_GETPIPE_SZ, 0);
	both_fcntl("F_SETPIPE_SZ of a file", file, F_SETPIPE_SZ, 4096);
	say("F_SETLK", "%d", fcntl(file, F_SETLK, &lock));
	say("F_OFD_GETLK", "%d type %d", fcntl64(file, F_OFD_GETLK, &found), found.l_type);
	close(file);
}

static void inode(void)
{
	struct stat read_end, write_end;
	int ends[2], queued = -1;

	pipe(ends);
	fstat(ends[0], &read_end);
	fstat(ends[1], &write_end);
	write(ends[1], "12345", 5);
	ioctl(ends[0], FIONREAD, &queued);
	say("inode", "mode %o nlink %d size %d block %d same %d queued %d", read_end.st_mode,
	    (int)read_end.st_nlink, (int)read_end.st_size, (int)read_end.st_blksize,
	    read_end.st_ino == write_end.st_ino && read_end.st_dev == write_end.st_dev, queued);
	close_both(ends);
}

static void *make_pipes(void *bad)
{
	int round;

	for (round = 0; round < 200; round++) {
		int ends[2];

		if (pipe2(ends, round % 2 ? O_CLOEXEC : 0) || strcmp(works(ends), "works") ||
		    fcntl(ends[0], F_GETFD) != round % 2 || fcntl(ends[1], F_GETFD) != round % 2)
			__atomic_add_fetch((int *)bad, 1, __ATOMIC_RELAXED);
		close_both(ends);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t thread[8];
	int before = count_open(), bad = 0, i;

	for (i = 0; i < 8; i++)
		pthread_create(&thread[i], NULL, make_pipes, &bad);
	for (i = 0; i < 8; i++)
		pthread_join(thread[i], NULL);
	say("threads", "bad %d leaks %d", bad, count_open() - before);
}

static int by_handler;

static void handler(int signal)
{
	int ends[2];

	(void)signal;
	if (pipe(ends) == 0) {
		__atomic_add_fetch(&by_handler, 1, __ATOMIC_RELAXED);
		close_both(ends);
	}
}

static void signals(void)
{
	struct itimerval every = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };
	int before = count_open(), bad = 0, round;

	signal(SIGALRM, handler);
	setitimer(ITIMER_REAL, &every, NULL);
	for (round = 0;
	     round < 500 || __atomic_load_n(&by_handler, __ATOMIC_RELAXED) < 20; round++) {
		int ends[2];
		void *memory = malloc(round % 5000);

		errno = 77;
		if (pipe(ends) || errno != 77 || strcmp(works(ends), "works"))
			bad++;
		else
			close_both(ends);
		free(memory);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_DFL);
	say("signal handlers", "bad %d some %d leaks %d", bad, by_handler > 0,
	    count_open() - before);
}

static void children(void)
{
	int ends[2], status, before = count_open();
	char text[64] = "";
	pid_t child;

	pipe(ends);
	child = fork();
	if (child == 0) {
		int own[2];

		pipe(own);
		write(ends[1], works(own), 5);
		_exit(0);
	}
	waitpid(child, &status, 0);
	read(ends[0], text, sizeof(text));
	say("fork", "status %d text %s", status, text);
	close_both(ends);

	child = vfork();
	if (child == 0) {
		int own[2];

		if (pipe2(own, O_CLOEXEC) == 0)
			execl("/bin/sh", "sh", "-c", "exit 9", NULL);
		_exit(1);
	}
	waitpid(child, &status, 0);
	say("vfork", "status %d leaks %d", WEXITSTATUS(status), count_open() - before);
}

/* The descriptors that a new program starts with. */
static void inherited(const char *name, int flag)
{
	static const char command[] = "for i in /proc/self/fd/*; do n=${i##*/};"
				      " [ -e $i ] && echo -n \"$n \"; done";
	char *const arguments[] = { "sh", "-c", (char *)command, NULL };
	int ends[2], out[2], status;
	char text[128] = "";
	posix_spawn_file_actions_t actions;
	pid_t child;

	pipe2(ends, flag);
	pipe2(out, O_CLOEXEC);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	posix_spawn(&child, "/bin/sh", &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(out[1]);
	waitpid(child, &status, 0);
	read(out[0], text, sizeof(text) - 1);
	say(name, "%s", text);
	close_both(ends);
	close(out[0]);
}

static void modes(void)
{
	static const char *const texts[] = { "", "r", "w", "rw", "re", "we", "er", "ree", "e",
					     "rb", "r+", "rr", "x" };
	unsigned int i;

	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		int before = count_open();
		FILE *file;

		errno = 0;
		file = popen("cat >&2", texts[i]);
		if (file)
			say("popen mode", "\"%s\" fd %d", texts[i], fcntl(fileno(file), F_GETFD));
		else
			say("popen mode", "\"%s\" %s", texts[i], name_of(errno));
		if (file && strchr(texts[i], 'r'))
			fflush(NULL);
		if (file) {
			int status = pclose(file);

			say("  pclose", "%d leaks %d", status, count_open() - before);
		}
	}
}

static void commands(void)
{
	static const char *const texts[] = { "exit 3", "kill -9 $$", "true", "no-such-command 2>&-",
					     "echo one; echo two", "exit 255" };
	unsigned int i;

	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		FILE *file = popen(texts[i], "r");
		char text[64] = "";
		size_t got = fread(text, 1, sizeof(text) - 1, file);
		int status = pclose(file);

		say("pclose status", "'%s' read %zu status %x", texts[i], got, status);
	}
	for (i = 0; i < 3; i++) {
		FILE *file = popen(texts[i], "r");

		say("fclose status", "'%s' %x", texts[i], fclose(file));
	}
}

static void broken_flush(void)
{
	FILE *file;

	signal(SIGPIPE, SIG_IGN);
	file = popen("exec <&-; exit 0", "w");
	usleep(200000);
	fprintf(file, "nobody reads this\n");
	errno = 0;
	say("flush fails, command ends well", "%d", pclose(file));
	file = popen("exec <&-; exit 4", "w");
	usleep(200000);
	fprintf(file, "nobody reads this\n");
	say("flush fails, command does not", "%x", pclose(file));
	signal(SIGPIPE, SIG_DFL);
}

static void no_child(void)
{
	FILE *file;
	int answer;

	signal(SIGCHLD, SIG_IGN);
	file = popen("exit 5", "r");
	errno = 0;
	answer = pclose(file);
	say("pclose where nobody is waited for", "%d %s", answer, name_of(errno));
	signal(SIGCHLD, SIG_DFL);
}

static void ordinary(void)
{
	FILE *file = fopen("/dev/null", "r");

	say("pclose of no popen", "%d", pclose(file));
	file = fopen("/dev/full", "w");
	fputs("x", file);
	say("fclose that fails", "%d", fclose(file));
}

static void several(void)
{
	static const char list[] = "for i in /proc/self/fd/*; do n=${i##*/};"
				   " [ -e $i ] && echo -n \"$n \"; done";
	FILE *one = popen("cat", "w"), *two = popen("cat", "w");
	FILE *three = popen(list, "r");
	char text[128] = "";
	int first, second;

	fread(text, 1, sizeof(text) - 1, three);
	say("a command has none of the streams before it", "%s", text);
	/* Were the second to have the first's, this would wait for ever. */
	first = pclose(one);
	second = pclose(two);
	say("in the order of their beginning", "%d %d %d", first, second, pclose(three));
}

static void without_standard_files(void)
{
	int closed;

	for (closed = 0; closed < 3; closed++) {
		pid_t child;

		fflush(stdout);
		number++;
		child = fork();
		if (child == 0) {
			int out = fcntl(1, F_DUPFD_CLOEXEC, 30);
			char text[64] = "";
			FILE *file;

			if (closed != 1)
				close(0);
			if (closed != 0)
				close(1);
			file = popen("echo hello", "r");
			fgets(text, sizeof(text), file);
			dprintf(out, "    read by %d: %s", fileno(file), text);
			dprintf(out, "    status %d\n", pclose(file));
			file = popen("read x; [ \"$x\" = hello ]", "w");
			fputs("hello\n", file);
			dprintf(out, "    written by %d", fileno(file));
			dprintf(out, " status %d\n", pclose(file));
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
}

static void *run_commands(void *bad)
{
	int round;

	for (round = 0; round < 10; round++) {
		FILE *file = popen("cat >/dev/null", "w");

		fputs("text\n", file);
		if (pclose(file))
			__atomic_add_fetch((int *)bad, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void popen_in_threads(void)
{
	pthread_t thread[4];
	int before = count_open(), bad = 0, i;
	int status;
	pid_t child;

	for (i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, run_commands, &bad);
	/* A child of fork while others are in popen can use it, too. */
	child = fork();
	if (child == 0) {
		FILE *file = popen("exit 6", "r");

		_exit(WEXITSTATUS(pclose(file)));
	}
	waitpid(child, &status, 0);
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	say("popen in threads", "bad %d child %d leaks %d", bad, WEXITSTATUS(status),
	    count_open() - before);
}

static void popen_without_room(void)
{
	int leave;

	for (leave = 0; leave < 4; leave++) {
		pid_t child;

		fflush(stdout);
		number++;
		child = fork();
		if (child == 0) {
			FILE *file;

			fill_up(leave);
			errno = 0;
			file = popen("true", "r");
			number--;
			if (file)
				say("popen", "%d free: fd %d", leave, fileno(file));
			if (file)
				say("  pclose", "%d", pclose(file));
			else
				say("popen", "%d free: %s", leave, name_of(errno));
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
}

int main(void)
{
	bad_addresses();
	flags();
	full_table();
	numbers();
	kept_errno();
	sizes();
	inode();
	threads();
	signals();
	children();
	inherited("a program inherits", 0);
	inherited("but not what is marked", O_CLOEXEC);
	modes();
	commands();
	broken_flush();
	no_child();
	ordinary();
	several();
	without_standard_files();
	popen_in_threads();
	popen_without_room();
	say("in the end", "open %d", count_open());
	return 0;
}
