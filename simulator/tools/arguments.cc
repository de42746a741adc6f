#include "arguments.h"

#include <getopt.h>

#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <string_view>

namespace remy {

const char* const kUsage =
    "usage: remy-simulate --remycc FILE.dna [--remycc FILE.dna ...] --senders N --link-mbps X\n"
    "                     --rtt-ms Y --on-ms A --off-ms B [--buffer-packets K] [--loss P]\n"
    "                     [--jitter-ms J] [--timestamp-resolution-ms R]\n"
    "                     [--time-unit-ms U]\n"
    "                     --seconds S [--seed K] [--json]\n"
    "\n"
    "Simulates N senders that share one link and run a RemyCC (several: in turn), each on and off\n"
    "for exponentially distributed times, and prints what each of them got. A sender sees each\n"
    "ACK late by an exponentially distributed jitter of mean J, and times in whole multiples of "
    "R.\n"
    "A .dna file does not tell its unit of time; it is U, 1 unless given.\n";

namespace {

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
  } else if (name == "link-mbps") {
    arguments.link_mbps = parse_positive(name, text);
  } else if (name == "rtt-ms") {
    arguments.rtt_ms = parse_positive(name, text);
  } else if (name == "on-ms") {
    arguments.on_ms = parse_positive(name, text);
  } else if (name == "off-ms") {
    arguments.off_ms = parse_positive(name, text);
  } else if (name == "buffer-packets") {
    arguments.buffer_packets =
        parse_number<std::uint32_t>(name, text, 0, true, "an integer from 0");
  } else if (name == "loss") {
    arguments.loss = parse_number<double>(name, text, 0, true, "a number from 0, below 1");
    if (arguments.loss >= 1) {
      throw UsageError("--loss: '" + std::string(text) + "' is not a number from 0, below 1");
    }
  } else if (name == "jitter-ms") {
    arguments.jitter_ms = parse_number<double>(name, text, 0, true, "a number from 0");
  } else if (name == "timestamp-resolution-ms") {
    arguments.timestamp_resolution_ms =
        parse_number<double>(name, text, 0, true, "a number from 0");
  } else if (name == "time-unit-ms") {
    arguments.time_unit_ms = parse_positive(name, text);
  } else if (name == "seconds") {
    arguments.seconds = parse_positive(name, text);
  } else if (name == "seed") {
    arguments.seed = parse_number<std::uint64_t>(name, text, 0, true, "an integer from 0");
  }
}

}  // namespace

Arguments parse_arguments(int argc, char** argv) {
  static const std::array<option, 16> options = {{
      {"remycc", required_argument, nullptr, 'r'},
      {"senders", required_argument, nullptr, 'r'},
      {"link-mbps", required_argument, nullptr, 'r'},
      {"rtt-ms", required_argument, nullptr, 'r'},
      {"on-ms", required_argument, nullptr, 'r'},
      {"off-ms", required_argument, nullptr, 'r'},
      {"seconds", required_argument, nullptr, 'r'},
      {"seed", required_argument, nullptr, 'o'},
      {"buffer-packets", required_argument, nullptr, 'o'},
      {"loss", required_argument, nullptr, 'o'},
      {"jitter-ms", required_argument, nullptr, 'o'},
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
                         "' is no option, or needs a value; see --help");
    }
  }
  if (optind < argc) {
    throw UsageError(std::string("'") + argv[optind] + "' is one argument too many; see --help");
  }
  for (const option& each : options) {
    if (each.val == 'r' && !given.contains(each.name)) {
      throw UsageError(std::string("--") + each.name + " is missing; see --help");
    }
  }
  return arguments;
}

}  // namespace remy
