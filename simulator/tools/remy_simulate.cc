#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "arguments.h"
#include "evaluation/evaluator.h"
#include "report.h"
#include "rule_table/dna.h"

namespace {

remy::RuleTable read_table(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) {
    throw remy::UsageError(path + ": " + std::strerror(errno));
  }
  if (bytes.starts_with('{')) {
    throw remy::UsageError(path +
                           ": holds JSON, but must be a .dna file; remy-farm convert makes one");
  }
  try {
    return remy::read_dna(bytes).table;
  } catch (const remy::InvalidTable& problem) {
    throw remy::UsageError(path + ": " + problem.what());
  }
}

// One specimen of key 0 with one group of senders a table, as even as they can be.
remy::EvaluationRequest make_request(const remy::Arguments& arguments) {
  remy::EvaluationRequest request;
  remy::Specimen specimen;
  specimen.link_rate_packets_per_ms = arguments.link_mbps * 1000 / (8 * remy::kPacketBytes);
  specimen.rtt_ms = arguments.rtt_ms;
  specimen.buffer_packets = arguments.buffer_packets;
  specimen.loss_probability = arguments.loss;
  specimen.measurement = {remy::ExponentialJitter{arguments.jitter_ms},
                          arguments.timestamp_resolution_ms};
  const remy::Traffic traffic{remy::ExponentialTime{arguments.on_ms}, arguments.off_ms};
  for (const std::string& path : arguments.remyccs) {
    request.tables.push_back(read_table(path));
  }
  const auto tables = static_cast<std::uint32_t>(request.tables.size());
  for (std::uint32_t sender = 0; sender < arguments.senders; ++sender) {
    specimen.senders.push_back({1, sender % tables, traffic});
  }
  request.specimens = {specimen};
  request.candidates = {remy::Unchanged{}};
  request.duration_ms = arguments.seconds * 1000;
  request.seed = arguments.seed;
  return request;
}

int run(int argc, char** argv) {
  const remy::Arguments arguments = remy::parse_arguments(argc, argv);
  if (arguments.help) {
    std::cout << remy::kUsage;
    return 0;
  }
  const remy::EvaluationRequest request = make_request(arguments);
  const std::clock_t start = std::clock();
  const auto outcomes = remy::evaluate(request, 1);
  const double cpu_seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  const auto report = arguments.json ? remy::json_report : remy::readable_report;
  std::cout << report(arguments, request.specimens.front(), outcomes.front(), cpu_seconds)
            << std::flush;
  return std::cout ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const remy::UsageError& problem) {
    std::cerr << "remy-simulate: " << problem.what() << "\n";
    return 2;
  } catch (const std::exception& problem) {
    std::cerr << "remy-simulate: " << problem.what() << "\n";
    return dynamic_cast<const std::invalid_argument*>(&problem) != nullptr ? 2 : 1;
  }
}
