#include "report.h"

#include <charconv>
#include <cstdio>
#include <optional>
#include <vector>

#include "evaluation/digest.h"
#include "evaluation/objective.h"

namespace remy {
namespace {

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
  std::size_t counted = 0;
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
        ++counted;
      }
    }
    report.packets_received += sender.packets_received;
    report.senders.push_back(row);
  }
  report.senders_left_out = outcome.senders.size() - counted;
  if (counted > 0) {
    const auto divisor = static_cast<double>(counted);
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

}  // namespace

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

}  // namespace remy
