#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace remy {

#if !defined(__cpp_exceptions)
// Replaces exceptions where they are disabled, as in WebAssembly: reports the message and ends the
// call. Defined by the program (live/live.cc).
[[noreturn]] void end_call(const std::string& sentence);
#endif

// Throws Error. The message is one sentence: the offending value, and what is allowed.
template <class Error = std::invalid_argument>
[[noreturn]] void refuse(const std::string& sentence) {
#if defined(__cpp_exceptions)
  throw Error(sentence);
#else
  end_call(sentence);
#endif
}

// Throws std::invalid_argument with the message "`field` is `value` but must be `allowed`" if
// `condition` is false.
void require(bool condition, std::string_view field, double value, std::string_view allowed);

bool is_positive(double value);      // and finite
bool is_not_negative(double value);  // and finite

inline constexpr std::string_view kPositive = "a positive number";
inline constexpr std::string_view kNotNegative = "a finite number not below 0";

}  // namespace remy
