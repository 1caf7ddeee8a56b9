// What a program that was linked beside a newer C library would take of it, from the older one with
// which it is to run: hypot, of which glibc 2.35 has a new version under the same name, and
// arc4random of 2.36, which the C++ runtime asks for random numbers.
#include <sys/random.h>

#include <cstdint>

#ifdef __x86_64__
extern "C" double first_hypot(double x, double y);
__asm__(".symver first_hypot, hypot@GLIBC_2.2.5");

extern "C" double __wrap_hypot(double x, double y);
extern "C" double __wrap_hypot(double x, double y) {
  return first_hypot(x, y);
}
#endif

extern "C" std::uint32_t arc4random() noexcept {
  std::uint32_t number = 0;
  while (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
  }
  return number;
}
