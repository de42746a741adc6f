#include "core/requirement.h"

#include <cmath>

namespace remy {

void require(bool condition, std::string_view field, double value, std::string_view allowed) {
  if (!condition) {
    refuse(std::string(field) + " is " + std::to_string(value) + " but must be " +
           std::string(allowed));
  }
}

bool is_positive(double value) { return value > 0 && std::isfinite(value); }

bool is_not_negative(double value) { return value >= 0 && std::isfinite(value); }

}  // namespace remy
