#include "core/requirement.h"

#include <cmath>
#include <stdexcept>

namespace remy {

void require(bool condition, std::string_view field, double value, std::string_view allowed) {
  if (!condition) {
    throw std::invalid_argument(std::string(field) + " is " + std::to_string(value) +
                                " but must be " + std::string(allowed));
  }
}

bool is_positive(double value) { return value > 0 && std::isfinite(value); }

bool is_not_negative(double value) { return value >= 0 && std::isfinite(value); }

}  // namespace remy
