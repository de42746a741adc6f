#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <system_error>

#include "arguments.h"
#include "evaluation/evaluator.h"
#include "report.h"
#include "table/dna.h"

namespace {

// As much as `remy-farm` takes: no table comes near, and some files have no end.
constexpr std::size_t kMaximumBytes = std::size_t{64} << 20;

std::string read_file(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) {
    throw remy::UsageError(path + ": is a directory, but must be a .dna file");
  }
  std::ifstream file(path, std::ios::binary);
  std::string bytes;
  std::array<char, std::size_t{1} << 16> piece{};
  while (file.read(piece.data(), piece.size()), file.gcount() > 0) {
    bytes.append(piece.data(), static_cast<std::size_t>(file.gcount()));
    if (bytes.size() > kMaximumBytes) {
      throw remy::UsageError(path + ": holds more than 64 MiB, which is no rule table");
    }
  }
  if (!file.eof()) {
    throw remy::UsageError(path + ": " + std::strerror(errno));
  }
  return bytes;
}

remy::RuleTable read_table(const std::string& path, double time_unit_ms) {
  const std::string bytes = read_file(path);
  if (bytes.starts_with('{')) {
    throw remy::UsageError(path +
                           ": holds JSON, but must be a .dna file; remy-farm convert makes one");
  }
  try {
    return remy::read_dna(bytes, time_unit_ms).table;
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
    request.tables.push_back(read_table(path, arguments.time_unit_ms));
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
