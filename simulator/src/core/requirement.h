#pragma once

#include <string>
#include <string_view>

namespace remy {

// Throws std::invalid_argument with the sentence "`field` is `value` but must be `allowed`" unless
// the condition holds.
void require(bool condition, std::string_view field, double value, std::string_view allowed);

bool is_positive(double value);      // and finite
bool is_not_negative(double value);  // and finite

inline constexpr std::string_view kPositive = "a positive number";
inline constexpr std::string_view kNotNegative = "a finite number not below 0";

}  // namespace remy
