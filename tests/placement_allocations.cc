// A program of its own, because it replaces operator new: once a Chooser is made for a machine of
// up to sixteen devices, no question that has an answer allocates. Exit 0 when that is so.
#include <cstdio>
#include <cstdlib>
#include <new>

#include "berth/testing/placement.h"

namespace {

long allocations = 0;

}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace berth::placement {
namespace {

int count_allocations() {
  Rng rng(51);
  long answered = 0, made = 0;
  for (const int devices : {1, 5, 8, 12, 16}) {
    Chooser chooser = testing::random_machine(rng, devices).chooser();
    std::vector<Question> questions;
    for (int i = 0; i < 1000; ++i) questions.push_back(testing::random_question(rng, devices));
    for (const Question& question : questions) {
      const long before = allocations;
      for (const PolicyKind policy :
           {PolicyKind::packed, PolicyKind::best_effort, PolicyKind::simple}) {
        const auto answer = chooser.choose(policy, question);
        if (!answer) return EXIT_FAILURE;
        static_cast<void>(chooser.best_alternative(question, *answer));
        static_cast<void>(chooser.best(question.available, question.count, question.objective));
        static_cast<void>(chooser.value(question.available, question.objective));
        ++answered;
      }
      made += allocations - before;
    }
  }
  std::printf("%ld answers, %ld allocations; %ld in all of the program\n", answered, made,
              allocations);
  return made == 0 && allocations > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace berth::placement

int main() {
  return berth::placement::count_allocations();
}
