// raw_spawn N PARALLEL: runs /bin/true N times, PARALLEL at once, and does nothing else: the floor
// that compare_spawn.py measures every other tool against.
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char** environ;

static void die(const char* what, int error) {
  fprintf(stderr, "raw_spawn: %s: %s\n", what, strerror(error));
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: raw_spawn N PARALLEL\n");
    return 2;
  }
  const int tasks = atoi(argv[1]);
  const int parallel = atoi(argv[2]);
  char* const command[] = {"/bin/true", NULL};

  for (int started = 0, ended = 0; ended < tasks;) {
    if (started < tasks && started - ended < parallel) {
      pid_t pid;
      const int error = posix_spawn(&pid, command[0], NULL, NULL, command, environ);
      if (error != 0) die(command[0], error);
      ++started;
    } else {
      int status;
      if (waitpid(-1, &status, 0) < 0) die("waitpid", errno);
      if (status != 0) die(command[0], EIO);
      ++ended;
    }
  }
}
