#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <iostream>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "evaluation/evaluator.h"
#include "evaluation/objective.h"
#include "table/dna.h"

namespace remy {
namespace {

// The command line is invalid. The message is one sentence.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Options, a subset of those of `remy-farm simulate`.
struct Arguments {
  std::vector<std::string> remyccs;  // assigned to senders in turn
  std::uint32_t senders = 0;
  double rate_mbps = 0;
  double rtt_ms = 0;
  double on_ms = 0;
  double off_ms = 0;
  std::optional<std::uint32_t> buffer_packets;
  double loss = 0;
  std::optional<double> jitter_ms;  // mean of an exponential distribution
  std::optional<double> jitter_percentile_99_ms;
  std::optional<double> timestamp_resolution_ms;
  std::optional<std::uint32_t> bunch_packets;
  std::optional<double> delayed_ack_ms;
  double rtt_offset_ms = 0;
  double reordering_probability = 0;
  double reordering_delay_ms = 0;
  bool is_realistic = false;
  double time_unit_ms = 1;  // unit of time of the .dna files
  double seconds = 0;
  std::uint64_t seed = 1;
  bool json = false;
  bool help = false;
};

constexpr const char* kUsage =
    "usage: remy-simulate --remycc FILE.dna [--remycc FILE.dna ...] --senders N --rate-mbps X\n"
    "                     --rtt-ms Y --on-ms A --off-ms B [--buffer-packets K]\n"
    "                     [--loss-probability P] [--jitter-ms J] [--jitter-percentile-99-ms Q]\n"
    "                     [--timestamp-resolution-ms R] [--bunch-packets M] [--delayed-ack-ms D]\n"
    "                     [--rtt-offset-ms O] [--reordering-probability F]\n"
    "                     [--reordering-delay-ms L] [--measurement realistic]\n"
    "                     [--time-unit-ms U]\n"
    "                     --seconds S [--seed K] [--json]\n"
    "\n"
    "Simulates N senders that share one link, and prints the results of each. Senders run the\n"
    "given RemyCCs in rotation, and are on and off for exponentially distributed times. They see\n"
    "ACKs late, by exponentially distributed jitter of mean J (with Q: log-normally distributed,\n"
    "of median J and 99th percentile Q), and measure times as multiples of R. A sender sends M\n"
    "packets at once. With D above 0, a receiver acknowledges every second packet, or a single\n"
    "one after D. The RTTs that a sender measures, except the first of an on period, are too long\n"
    "by its own offset of up to O. With probability P a packet is lost; with probability F it is\n"
    "delayed by L, so that later ones overtake it.\n"
    "`--measurement realistic` sets J 0.068, Q 0.2, R 0.001, M 2 and D 1 unless given.\n"
    "A .dna file does not record its unit of time, which is U (default 1).\n";

template <class Number>
Number parse_number(std::string_view option, std::string_view text, double minimum,
                    bool minimum_allowed, const char* allowed) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto value = static_cast<double>(number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) ||
      value < minimum || (value == minimum && !minimum_allowed)) {
    throw UsageError("--" + std::string(option) + ": '" + std::string(text) + "' is not " +
                     allowed);
  }
  return number;
}

double parse_positive(std::string_view option, std::string_view text) {
  return parse_number<double>(option, text, 0, false, "a number above 0");
}

void set_option(Arguments& arguments, std::string_view name, std::string_view text) {
  if (name == "remycc") {
    arguments.remyccs.emplace_back(text);
  } else if (name == "senders") {
    arguments.senders = parse_number<std::uint32_t>(name, text, 1, true, "an integer from 1");
  } else if (name == "rate-mbps") {
    arguments.rate_mbps = parse_positive(name, text);
  } else if (name == "rtt-ms") {
    arguments.rtt_ms = parse_positive(name, text);
  } else if (name == "on-ms") {
    arguments.on_ms = parse_positive(name, text);
  } else if (name == "off-ms") {
    arguments.off_ms = parse_positive(name, text);
  } else if (name == "buffer-packets") {
    arguments.buffer_packets =
        parse_number<std::uint32_t>(name, text, 0, true, "an integer from 0");
  } else if (name == "loss-probability") {
    arguments.loss = parse_number<double>(name, text, 0, true, "a number from 0, below 1");
    if (arguments.loss >= 1) {
      throw UsageError("--loss-probability: '" + std::string(text) +
                       "' is not a number from 0, below 1");
    }
  } else if (name == "jitter-ms") {
    arguments.jitter_ms = parse_number<double>(name, text, 0, true, "a number from 0");
  } else if (name == "timestamp-resolution-ms") {
    arguments.timestamp_resolution_ms =
        parse_number<double>(name, text, 0, true, "a number from 0");
  } else if (name == "jitter-percentile-99-ms") {
    arguments.jitter_percentile_99_ms = parse_positive(name, text);
  } else if (name == "bunch-packets") {
    arguments.bunch_packets = parse_number<std::uint32_t>(name, text, 1, true, "an integer from 1");
  } else if (name == "delayed-ack-ms") {
    arguments.delayed_ack_ms = parse_number<double>(name, text, 0, true, "a number from 0");
  } else if (name == "rtt-offset-ms") {
    arguments.rtt_offset_ms = parse_number<double>(name, text, 0, true, "a number from 0");
  } else if (name == "reordering-probability") {
    arguments.reordering_probability =
        parse_number<double>(name, text, 0, true, "a number from 0 to 1");
  } else if (name == "reordering-delay-ms") {
    arguments.reordering_delay_ms = parse_number<double>(name, text, 0, true, "a number from 0");
  } else if (name == "measurement") {
    arguments.is_realistic = text == "realistic";
    if (!arguments.is_realistic) {
      throw UsageError("--measurement: '" + std::string(text) +
                       "' is not allowed; the only value is realistic");
    }
  } else if (name == "time-unit-ms") {
    arguments.time_unit_ms = parse_positive(name, text);
  } else if (name == "seconds") {
    arguments.seconds = parse_positive(name, text);
  } else if (name == "seed") {
    arguments.seed = parse_number<std::uint64_t>(name, text, 0, true, "an integer from 0");
  }
}

// Throws UsageError.
Arguments parse_arguments(int argc, char** argv) {
  static const std::array<option, 23> options = {{
      {"remycc", required_argument, nullptr, 'r'},
      {"senders", required_argument, nullptr, 'r'},
      {"rate-mbps", required_argument, nullptr, 'r'},
      {"rtt-ms", required_argument, nullptr, 'r'},
      {"on-ms", required_argument, nullptr, 'r'},
      {"off-ms", required_argument, nullptr, 'r'},
      {"seconds", required_argument, nullptr, 'r'},
      {"seed", required_argument, nullptr, 'o'},
      {"buffer-packets", required_argument, nullptr, 'o'},
      {"loss-probability", required_argument, nullptr, 'o'},
      {"jitter-ms", required_argument, nullptr, 'o'},
      {"jitter-percentile-99-ms", required_argument, nullptr, 'o'},
      {"bunch-packets", required_argument, nullptr, 'o'},
      {"delayed-ack-ms", required_argument, nullptr, 'o'},
      {"rtt-offset-ms", required_argument, nullptr, 'o'},
      {"reordering-probability", required_argument, nullptr, 'o'},
      {"reordering-delay-ms", required_argument, nullptr, 'o'},
      {"measurement", required_argument, nullptr, 'o'},
      {"timestamp-resolution-ms", required_argument, nullptr, 'o'},
      {"time-unit-ms", required_argument, nullptr, 'o'},
      {"json", no_argument, nullptr, 'j'},
      {"help", no_argument, nullptr, 'h'},
      {nullptr, 0, nullptr, 0},
  }};
  Arguments arguments;
  std::set<std::string_view> given;
  opterr = 0;
  int index = 0;
  for (int c = 0; (c = getopt_long(argc, argv, "", options.data(), &index)) != -1;) {
    switch (c) {
      case 'r':
      case 'o':
        given.insert(options[static_cast<std::size_t>(index)].name);
        set_option(arguments, options[static_cast<std::size_t>(index)].name, optarg);
        break;
      case 'j':
        arguments.json = true;
        break;
      case 'h':
        arguments.help = true;
        return arguments;
      default:
        throw UsageError(std::string("'") + argv[optind - 1] +
                         "' is not an option, or needs a value; see --help");
    }
  }
  if (optind < argc) {
    throw UsageError(std::string("'") + argv[optind] + "' is an unexpected argument; see --help");
  }
  for (const option& each : options) {
    if (each.val == 'r' && !given.contains(each.name)) {
      throw UsageError(std::string("--") + each.name + " is missing; see --help");
    }
  }
  return arguments;
}

constexpr double kMbpsPerPacketPerMs = kPacketBytes * 8 / 1000;

struct SenderReport {
  double throughput_mbps = 0;
  double throughput_equal_share_mbps = 0;
  std::optional<double> delay_ms;
};

struct Report {
  std::vector<SenderReport> senders;
  // Means over the senders that received packets; none if there is no such sender.
  std::optional<double> throughput_over_link_rate;
  std::optional<double> delay_over_rtt;
  std::optional<double> normalized_score;
  std::uint64_t packets_received = 0;
  std::size_t senders_left_out = 0;
};

Report summarize(const Arguments& arguments, const Specimen& specimen,
                 const SpecimenOutcome& outcome) {
  Report report;
  double throughput = 0;
  double delay = 0;
  double score = 0;
  std::size_t scored = 0;
  const SenderScores scores =
      normalized_scores(0, specimen, outcome.senders, arguments.seconds * 1000);
  for (std::size_t i = 0; i < outcome.senders.size(); ++i) {
    const SenderResults& sender = outcome.senders[i];
    const auto packets = static_cast<double>(sender.packets_received);
    SenderReport row;
    if (sender.on_ms > 0) {
      row.throughput_mbps = packets / sender.on_ms * kMbpsPerPacketPerMs;
      row.throughput_equal_share_mbps = packets / sender.share_ms * kMbpsPerPacketPerMs;
    }
    if (sender.packets_received > 0) {
      row.delay_ms = sender.delay_sum_ms / packets;
      if (scores[i]) {
        throughput += packets / sender.share_ms / specimen.link_rate_packets_per_ms;
        delay += *row.delay_ms / specimen.rtt_ms;
        score += *scores[i];
        ++scored;
      }
    }
    report.packets_received += sender.packets_received;
    report.senders.push_back(row);
  }
  report.senders_left_out = outcome.senders.size() - scored;
  if (scored > 0) {
    const auto divisor = static_cast<double>(scored);
    report.throughput_over_link_rate = throughput / divisor;
    report.delay_over_rtt = delay / divisor;
    report.normalized_score = score / divisor;
  }
  return report;
}

std::string number(std::optional<double> value) {
  if (!value) {
    return "null";
  }
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof text, *value);
  return error == std::errc() ? std::string(text, end) : "null";
}

template <class... Values>
std::string format(const char* pattern, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

std::string json_report(const Arguments& arguments, const Specimen& specimen,
                        const SpecimenOutcome& outcome, double cpu_seconds) {
  const Report report = summarize(arguments, specimen, outcome);
  std::string text = "{\"senders\": [";
  for (std::size_t i = 0; i < report.senders.size(); ++i) {
    const SenderReport& row = report.senders[i];
    const SenderResults& sender = outcome.senders[i];
    text += (i == 0 ? "" : ", ");
    text += "{\"throughput_mbps\": " + number(row.throughput_mbps);
    text += ", \"throughput_equal_share_mbps\": " + number(row.throughput_equal_share_mbps);
    text += ", \"delay_ms\": " + number(row.delay_ms);
    text += ", \"packets_received\": " + std::to_string(sender.packets_received);
    text += ", \"packets_lost\": " + std::to_string(sender.packets_lost);
    text += ", \"on_ms\": " + number(sender.on_ms) + "}";
  }
  text += "], \"throughput_over_link_rate\": " + number(report.throughput_over_link_rate);
  text += ", \"delay_over_rtt\": " + number(report.delay_over_rtt);
  text += ", \"normalized_score_per_sender\": " + number(report.normalized_score);
  text += ", \"senders_left_out\": " + std::to_string(report.senders_left_out);
  text += ", \"packets_received\": " + std::to_string(report.packets_received);
  text += ", \"cpu_seconds\": " + number(cpu_seconds);
  text += ", \"seed\": " + std::to_string(arguments.seed);
  text += ", \"simulated_seconds\": " + number(arguments.seconds);
  text += ", \"digest\": \"" + digest({outcome}) + "\"}\n";
  return text;
}

std::string readable_report(const Arguments& arguments, const Specimen& specimen,
                            const SpecimenOutcome& outcome, double cpu_seconds) {
  const Report report = summarize(arguments, specimen, outcome);
  std::string text =
      "sender  throughput Mbit/s  equal share Mbit/s  delay ms    packets     on s\n";
  for (std::size_t i = 0; i < report.senders.size(); ++i) {
    const SenderReport& row = report.senders[i];
    const SenderResults& sender = outcome.senders[i];
    text += format("%6zu  %17.3f  %18.3f  %8.2f  %9llu  %7.1f\n", i, row.throughput_mbps,
                   row.throughput_equal_share_mbps, row.delay_ms.value_or(0),
                   static_cast<unsigned long long>(sender.packets_received), sender.on_ms / 1000);
  }
  text += "throughput / link rate  " + number(report.throughput_over_link_rate) + "\n";
  text += "delay / RTT             " + number(report.delay_over_rtt) + "\n";
  text += "normalized score        " + number(report.normalized_score) + "\n";
  text += format("packets received        %llu in %.3f CPU-seconds\n",
                 static_cast<unsigned long long>(report.packets_received), cpu_seconds);
  text += "digest                  " + digest({outcome}) + "\n";
  return text;
}

// The size limit of `remy-farm`, too. It is far above any table, and ends the reading of devices
// that never end.
constexpr std::size_t kMaximumBytes = std::size_t{64} << 20;

// How long to wait for the writer of a pipe.
constexpr int kPipeWriterTimeoutMs = 1000;

// An open file, or a pipe that has a writer: reading from a pipe without one would wait for ever.
// Throws UsageError.
class InputFile {
 public:
  explicit InputFile(const std::string& path)
      : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    if (descriptor_ < 0) {
      throw UsageError(path_ + ": " + std::strerror(errno));
    }
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile() { ::close(descriptor_); }

  // Checks the file without blocking, and returns the first byte of a pipe. The rest is read with
  // read().
  std::string check() {
    struct stat status{};
    ::fstat(descriptor_, &status);
    if (S_ISDIR(status.st_mode)) {
      throw UsageError(path_ + ": is a directory, but must be a .dna file");
    }
    std::string bytes;
    if (S_ISFIFO(status.st_mode)) {
      pollfd writer{descriptor_, POLLIN, 0};
      ::poll(&writer, 1, kPipeWriterTimeoutMs);
      char first = 0;
      const auto count = ::read(descriptor_, &first, 1);
      if (count == 0) {
        throw UsageError(path_ + ": is a pipe that nobody writes to");
      }
      bytes.append(&first, count > 0 ? 1 : 0);
    }
    ::fcntl(descriptor_, F_SETFL, ::fcntl(descriptor_, F_GETFL) & ~O_NONBLOCK);
    return bytes;
  }

  // Returns the number of bytes read; 0 at the end.
  std::size_t read(std::span<char> into) {
    const auto count = ::read(descriptor_, into.data(), into.size());
    if (count < 0) {
      throw UsageError(path_ + ": " + std::strerror(errno));
    }
    return static_cast<std::size_t>(count);
  }

 private:
  const std::string& path_;
  int descriptor_;
};

std::string read_file(const std::string& path) {
  InputFile file(path);
  std::string bytes = file.check();
  std::array<char, std::size_t{1} << 16> chunk{};
  while (const std::size_t count = file.read(chunk)) {
    bytes.append(chunk.data(), count);
    if (bytes.size() > kMaximumBytes) {
      throw UsageError(path + ": is larger than 64 MiB, but a rule table must be smaller");
    }
  }
  return bytes;
}

RuleTable read_table(const std::string& path, double time_unit_ms) {
  const std::string bytes = read_file(path);
  if (bytes.starts_with('{')) {
    throw UsageError(path + ": holds JSON, but must be a .dna file; remy-farm simulate reads it");
  }
  try {
    return read_dna(bytes, time_unit_ms).table;
  } catch (const InvalidTable& problem) {
    throw UsageError(path + ": " + problem.what());
  }
}

// Throws UsageError.
MeasurementNoise make_measurement(const Arguments& arguments) {
  MeasurementNoise noise;
  if (arguments.is_realistic) {
    noise.jitter = LogNormalJitter{0.068, 0.2};
    noise.timestamp_resolution_ms = 0.001;
    noise.bunch_packets = 2;
    noise.delayed_ack_ms = 1;
  }
  if (const auto percentile_99_ms = arguments.jitter_percentile_99_ms) {
    const double median_ms = arguments.jitter_ms.value_or(0);
    if (median_ms <= 0 || median_ms > *percentile_99_ms) {
      throw UsageError(
          "--jitter-percentile-99-ms needs a --jitter-ms above 0 and at most as large");
    }
    noise.jitter = LogNormalJitter{median_ms, *percentile_99_ms};
  } else if (arguments.jitter_ms) {
    noise.jitter = ExponentialJitter{*arguments.jitter_ms};
  }
  noise.timestamp_resolution_ms =
      arguments.timestamp_resolution_ms.value_or(noise.timestamp_resolution_ms);
  noise.bunch_packets = arguments.bunch_packets.value_or(noise.bunch_packets);
  noise.delayed_ack_ms = arguments.delayed_ack_ms.value_or(noise.delayed_ack_ms);
  noise.rtt_offset_maximum_ms = arguments.rtt_offset_ms;
  noise.reordering_probability = arguments.reordering_probability;
  noise.reordering_delay_ms = arguments.reordering_delay_ms;
  return noise;
}

// Makes a request with one specimen of key 0. Senders are assigned to tables in turn.
EvaluationRequest make_request(const Arguments& arguments) {
  EvaluationRequest request;
  Specimen specimen;
  specimen.link_rate_packets_per_ms = arguments.rate_mbps * 1000 / (8 * kPacketBytes);
  specimen.rtt_ms = arguments.rtt_ms;
  specimen.buffer_packets = arguments.buffer_packets;
  specimen.loss_probability = arguments.loss;
  specimen.measurement = make_measurement(arguments);
  const Traffic traffic{ExponentialTime{arguments.on_ms}, arguments.off_ms};
  for (const std::string& path : arguments.remyccs) {
    request.tables.push_back(read_table(path, arguments.time_unit_ms));
  }
  const auto tables = static_cast<std::uint32_t>(request.tables.size());
  for (std::uint32_t sender = 0; sender < arguments.senders; ++sender) {
    specimen.senders.push_back({1, sender % tables, traffic});
  }
  request.specimens = {specimen};
  request.candidates = {Unchanged{}};
  request.duration_ms = arguments.seconds * 1000;
  request.seed = arguments.seed;
  return request;
}

int run(int argc, char** argv) {
  const Arguments arguments = parse_arguments(argc, argv);
  if (arguments.help) {
    std::cout << kUsage;
    return 0;
  }
  const EvaluationRequest request = make_request(arguments);
  const std::clock_t start = std::clock();
  const auto outcomes = evaluate(request, 1);
  const double cpu_seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  const auto report = arguments.json ? json_report : readable_report;
  std::cout << report(arguments, request.specimens.front(), outcomes.front(), cpu_seconds)
            << std::flush;
  return std::cout ? 0 : 1;
}

}  // namespace
}  // namespace remy

int main(int argc, char** argv) {
  try {
    return remy::run(argc, argv);
  } catch (const remy::UsageError& problem) {
    std::cerr << "remy-simulate: " << problem.what() << "\n";
    return 2;
  } catch (const std::exception& problem) {
    std::cerr << "remy-simulate: " << problem.what() << "\n";
    return dynamic_cast<const std::invalid_argument*>(&problem) != nullptr ? 2 : 1;
  }
}
