#include "elements/opportunities.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/elementary.h"
#include "core/random.h"
#include "core/requirement.h"

namespace remy {
namespace {

constexpr std::size_t kBatch = 256;
// A generator without an opportunity for so many ticks has ended.
constexpr std::uint64_t kMaxIdleTicks = 10'000'000;

// Random streams of a generator.
constexpr std::uint64_t kInitialRate = 0;
constexpr std::uint64_t kRateStep = 1;
constexpr std::uint64_t kOutageEscape = 2;
constexpr std::uint64_t kWait = 3;

const double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

Trace::Trace(std::vector<double> opportunities_ms)
    : opportunities_ms_(std::move(opportunities_ms)) {
  if (opportunities_ms_.empty()) {
    refuse("a trace has no opportunities but must have at least one");
  }
  double last_ms = 0;
  for (const double time_ms : opportunities_ms_) {
    if (!(time_ms >= last_ms && time_ms < kInfinity)) {
      refuse("a trace has an opportunity at " + std::to_string(time_ms) + " ms after one at " +
             std::to_string(last_ms) + " ms, but times must not decrease");
    }
    last_ms = time_ms;
  }
  // Many opportunities in a short trace would make skipping them too slow.
  require(last_ms * 1e6 >= static_cast<double>(opportunities_ms_.size()),
          "a trace's last opportunity", last_ms,
          "at least a millionth of a ms for each opportunity");
}

Opportunities::Opportunities(const OpportunitySource& source, bool ends, std::uint64_t key)
    : ends_(ends), key_(key) {
  if (const auto* const trace = std::get_if<std::shared_ptr<const Trace>>(&source)) {
    trace_ = *trace;
    next_ = trace_->opportunities_ms().data();
    end_ = next_ + trace_->opportunities_ms().size();
    return;
  }
  generator_ = std::get<TraceGenerator>(source);
  if (generator_->seed) {
    key_ = derive_key(*generator_->seed, static_cast<std::uint64_t>(Purpose::kLink));
  }
  rate_per_ms_ = open_unit_interval(random_bits(derive_key(key_, kInitialRate), 0)) *
                 generator_->maximum_packets_per_s / 1000;
  until_next_opportunity_ =
      -natural_logarithm(open_unit_interval(random_bits(derive_key(key_, kWait), 0)));
  generate();
}

void Opportunities::refill(double time_ms) {
  if (generator_) {
    generate();
    return;
  }
  const std::vector<double>& times_ms = trace_->opportunities_ms();
  if (ends_) {
    next_ = &kInfinity;
    end_ = next_ + 1;
    return;
  }
  ++repetitions_;
  // Starts one repetition early, because the division may round up.
  const double repetition = std::floor(time_ms / times_ms.back()) - 1;
  if (repetition > static_cast<double>(repetitions_)) {
    repetitions_ = static_cast<std::uint64_t>(repetition);
  }
  base_ms_ = static_cast<double>(repetitions_) * times_ms.back();
  next_ = times_ms.data();
  end_ = next_ + times_ms.size();
}

void Opportunities::generate() {
  const TraceGenerator& model = *generator_;
  const double tick_s = model.tick_ms / 1000;
  const double maximum_per_ms = model.maximum_packets_per_s / 1000;
  const double deviation_per_ms = model.volatility_packets_per_s / 1000 * std::sqrt(tick_s);
  const double escape_probability = 1 - exponential(-model.outage_escape_per_s * tick_s);
  generated_.clear();
  for (std::uint64_t idle_ticks = 0; generated_.size() < kBatch;) {
    const double tick_ends_ms = static_cast<double>(tick_ + 1) * model.tick_ms;
    const double rest_ms = tick_ends_ms - now_ms_;
    if (const double wait_ms = until_next_opportunity_ / rate_per_ms_; wait_ms <= rest_ms) {
      now_ms_ += wait_ms;
      generated_.push_back(now_ms_);
      ++opportunity_;
      until_next_opportunity_ = -natural_logarithm(
          open_unit_interval(random_bits(derive_key(key_, kWait), opportunity_)));
      idle_ticks = 0;
      continue;
    }
    until_next_opportunity_ = std::max(until_next_opportunity_ - rest_ms * rate_per_ms_, 0.0);
    now_ms_ = tick_ends_ms;
    ++tick_;
    const double step_per_ms = deviation_per_ms * normal(derive_key(key_, kRateStep), tick_);
    if (rate_per_ms_ > 0) {
      rate_per_ms_ += step_per_ms;
    } else if (unit_interval(random_bits(derive_key(key_, kOutageEscape), tick_)) <
               escape_probability) {
      rate_per_ms_ = std::fabs(step_per_ms);
    }
    if (rate_per_ms_ > maximum_per_ms) {
      rate_per_ms_ = 2 * maximum_per_ms - rate_per_ms_;
    }
    rate_per_ms_ = std::max(rate_per_ms_, 0.0);
    if (++idle_ticks == kMaxIdleTicks) {
      generated_.push_back(kNever);
      break;
    }
  }
  next_ = generated_.data();
  end_ = next_ + generated_.size();
}

double mean_rate_per_ms(const OpportunitySource& source) {
  if (const auto* const trace = std::get_if<std::shared_ptr<const Trace>>(&source)) {
    return static_cast<double>((*trace)->opportunities_ms().size()) / (*trace)->last_ms();
  }
  // The stationary distribution of Brownian motion between its bounds is uniform; outages are
  // neglected.
  return std::get<TraceGenerator>(source).maximum_packets_per_s / 2000;
}

void validate(const OpportunitySource& source, const std::string& field) {
  if (const auto* const generator = std::get_if<TraceGenerator>(&source)) {
    const auto check = [&field](const char* name, double value, double least, double most,
                                const char* allowed) {
      require(value >= least && value <= most, field + "." + name, value, allowed);
    };
    check("maximum_packets_per_s", generator->maximum_packets_per_s, 1, 1e7,
          "a number from 1 to 10000000");
    check("volatility_packets_per_s", generator->volatility_packets_per_s,
          generator->maximum_packets_per_s / 1000, generator->maximum_packets_per_s * 1000,
          "from a thousandth of maximum_packets_per_s to a thousand times it");
    check("outage_escape_per_s", generator->outage_escape_per_s, 0.001, 1e6,
          "a number from 0.001 to 1000000");
    check("tick_ms", generator->tick_ms, 0.1, 1e6, "a number from 0.1 to 1000000");
    return;
  }
  if (std::get<std::shared_ptr<const Trace>>(source) == nullptr) {
    refuse(field + " has no trace but must have one");
  }
}

}  // namespace remy
