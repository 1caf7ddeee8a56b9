#include "berth/experiment/proposers/automatic.h"

#include "berth/experiment/proposers/cma_es.h"
#include "berth/experiment/proposers/gp.h"
#include "berth/experiment/proposers/nsga2.h"
#include "berth/experiment/proposers/tpe.h"

namespace berth::experiment {
namespace {

constexpr std::int64_t kGpTrials = 150;  // then CMA-ES goes down from where they have led
constexpr std::int64_t kFewGenerations = 20;
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
  if (program.search.samples <= count || !program.further_goals.empty()) return gp;
  return std::make_unique<InTurn>(std::move(gp), count,
                                  std::make_unique<CmaEs>(params, seed, count + 1));
}

}  // namespace

Search::Method chosen_method(const Program& program) {
  if (program.search.method != Search::Method::automatic) return program.search.method;
  const bool several = !program.further_goals.empty();
  if (program.params.size() > kMostGpParams)
    return several ? Search::Method::tpe : Search::Method::cma_es;
  // With many trials side by side CMA-ES has too few generations to get anywhere.
  const bool wide = program.parallel * kFewGenerations > program.search.samples;
  const auto by_gp = wide ? kMostGpTrials : kGpTrials;
  const bool few = several || program.search.samples <= by_gp;
  return few ? Search::Method::gp : Search::Method::automatic;
}

std::string why_chosen(const Program& program) {
  const auto samples = program.search.samples;
  switch (chosen_method(program)) {
    case Search::Method::tpe:
      return fmt::format("search: tpe, since {} parameters are many, and {} goals several",
                         program.params.size(), 1 + program.further_goals.size());
    case Search::Method::cma_es:
      return fmt::format("search: cma-es, since {} parameters are many", program.params.size());
    case Search::Method::gp:
      if (!program.further_goals.empty())
        return fmt::format("search: gp, since there are {} goals",
                           1 + program.further_goals.size());
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
    case Search::Method::nsga2: return std::make_unique<Nsga2>(params, seed);
    case Search::Method::gp: return gp_first(program, kMostGpTrials);
    case Search::Method::automatic: return gp_first(program, kGpTrials);
    default: return nullptr;
  }
}

}  // namespace berth::experiment
