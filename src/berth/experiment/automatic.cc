#include "berth/experiment/automatic.h"

#include "berth/experiment/cma_es.h"
#include "berth/experiment/gp.h"
#include "berth/experiment/tpe.h"

namespace berth::experiment {
namespace {

constexpr std::int64_t kGpTrials = 150;    // then CMA-ES goes down from where they have led
constexpr std::size_t kMostGpParams = 40;  // in more dimensions a process knows too little

/// One sampler for the first trials, another one, which hears of these too, for all others.
class InTurn final : public Sampler {
 public:
  InTurn(std::unique_ptr<Sampler> first, std::int64_t count, std::unique_ptr<Sampler> second)
      : first_(std::move(first)), count_(count), second_(std::move(second)) {}

  void tell(const TrialReport& trial) override {
    if (trial.number <= count_) first_->tell(trial);
    second_->tell(trial);
  }
  Values propose(std::int64_t number) const override {
    return (number <= count_ ? first_ : second_)->propose(number);
  }

 private:
  const std::unique_ptr<Sampler> first_;
  const std::int64_t count_;
  const std::unique_ptr<Sampler> second_;
};

/// So many trials by a Gaussian process, which finds the region.
std::unique_ptr<Sampler> gp_first(const Program& program, std::int64_t count) {
  const auto& params = program.params;
  const auto seed = program.search.seed;
  auto gp = std::make_unique<Gp>(params, seed);
  if (program.search.samples <= count) return gp;
  if (!program.further_goals.empty())
    return std::make_unique<InTurn>(std::move(gp), count, std::make_unique<Model>(params, seed));
  return std::make_unique<InTurn>(std::move(gp), count,
                                  std::make_unique<CmaEs>(params, seed, count + 1));
}

}  // namespace

Search::Method chosen_method(const Program& program) {
  if (program.search.method != Search::Method::automatic) return program.search.method;
  if (!program.further_goals.empty()) return Search::Method::tpe;
  if (program.params.size() > kMostGpParams) return Search::Method::cma_es;
  return program.search.samples > kGpTrials ? Search::Method::automatic : Search::Method::gp;
}

std::string why_chosen(const Program& program) {
  const auto samples = program.search.samples;
  switch (chosen_method(program)) {
    case Search::Method::tpe:
      return fmt::format("search: tpe, since there are {} goals", 1 + program.further_goals.size());
    case Search::Method::cma_es:
      return fmt::format("search: cma-es, since {} parameters are many", program.params.size());
    case Search::Method::gp:
      return fmt::format("search: gp, since {} trials of {} parameters are few", samples,
                         program.params.size());
    default:
      return fmt::format(
          "search: gp for {} trials, then cma-es from the best of them, since {} "
          "trials are many",
          kGpTrials, samples);
  }
}

std::unique_ptr<Sampler> make_sampler(const Program& program) {
  const auto& params = program.params;
  const auto seed = program.search.seed;
  switch (chosen_method(program)) {
    case Search::Method::tpe: return std::make_unique<Model>(params, seed);
    case Search::Method::cma_es: return std::make_unique<CmaEs>(params, seed);
    case Search::Method::gp: return gp_first(program, kMostGpTrials);
    case Search::Method::automatic: return gp_first(program, kGpTrials);
    default: return nullptr;
  }
}

}  // namespace berth::experiment
