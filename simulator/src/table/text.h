#pragma once

#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include "table/rule_table.h"

namespace remy {

// The shortest decimal text that reads back as the same number, for error messages.
inline std::string text(double value) {
  std::array<char, 32> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return error == std::errc{} ? std::string(buffer.data(), end) : "?";
}

// The signal's name in specs and error messages.
inline std::string_view signal_name(Signal signal) {
  static constexpr std::array<std::string_view, kSignals> kNames{"send_ewma", "rec_ewma",
                                                                 "rtt_ratio", "slow_rec_ewma"};
  return kNames[static_cast<std::size_t>(signal)];
}

}  // namespace remy
