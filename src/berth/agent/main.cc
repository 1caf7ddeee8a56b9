// berth-agent: the worker process that travels to other machines. It links nothing shared but libc
// and libm; its protocol comes with the flows. For now it tells what it is, so that a caller can
// compare builds before it trusts one.
#include <cstdio>
#include <cstring>

int main(int count, char** values) {
  if (count == 2 && std::strcmp(values[1], "--version") == 0) {
    std::puts("berth-agent 0.1.0");
    return 0;
  }
  std::fputs("berth-agent: started by berth itself; only --version is for people\n", stderr);
  return 2;
}
