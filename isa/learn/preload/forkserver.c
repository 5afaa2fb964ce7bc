/* A preload that turns one nvdisasm process into a server.
 *
 * nvdisasm opens its input file twice: once to look at it, and, after it has built
 * its tables, once more to disassemble it. At the second open this library waits on
 * descriptor 198 for lines "INPUT\tOUTPUT\n" and forks a child for each; the child
 * returns from the open with INPUT in place of the file, so that it disassembles that
 * one, and writes to OUTPUT. The exit status comes back as a line on descriptor 199.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int opens, child;
static char line[4096];

static int read_line(void) {
  size_t n = 0;
  char c;
  for (;;) {
    if (read(198, &c, 1) != 1) return 0;
    if (c == '\n') break;
    if (n < sizeof line - 1) line[n++] = c;
  }
  line[n] = 0;
  return 1;
}

static const char *serve(const char *path) {
  const char *input = getenv("CUPATCH_INPUT");
  if (!input || !path || strcmp(path, input) || ++opens < 2) return path;
  while (read_line()) {
    pid_t pid = fork();
    if (pid == 0) {
      char *out = strchr(line, '\t');
      if (!out) _exit(97);
      *out++ = 0;
      int fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
      if (fd < 0) _exit(98);
      dup2(fd, 1);
      dup2(fd, 2);
      close(fd);
      close(198);
      close(199);
      child = 1;
      return line;
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) < 0) _exit(99);
    dprintf(199, "%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status));
  }
  _exit(0);
}

FILE *fopen(const char *path, const char *mode) {
  static FILE *(*real)(const char *, const char *);
  if (!real) real = dlsym(RTLD_NEXT, "fopen");
  return real(serve(path), mode);
}

FILE *fopen64(const char *path, const char *mode) {
  static FILE *(*real)(const char *, const char *);
  if (!real) real = dlsym(RTLD_NEXT, "fopen64");
  return real(serve(path), mode);
}

/* Destructors of a process that is thrown away are wasted time. */
void exit(int status) {
  static void (*real)(int) __attribute__((noreturn));
  if (child) {
    fflush(NULL);
    _exit(status);
  }
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "exit");
  real(status);
  __builtin_unreachable();
}
