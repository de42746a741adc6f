#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace remy {

// A numeric setting of a protocol, transport or queue discipline.
struct Parameter {
  std::string_view name;         // ends in its unit, as target_ms does
  std::string_view description;  // a phrase, for documentation
  double default_value = 0;
  double minimum = 0;
  double maximum = 0;
};

// One version of a protocol, transport or queue discipline.
struct Variant {
  std::string_view name;
  std::string_view source;  // the document or program that it follows
  std::vector<Parameter> parameters;
};

// A name, variant and parameters as a user gives them. Omitted ones take their defaults.
struct Choice {
  std::string name;
  std::string variant;  // empty: the default variant
  std::vector<std::pair<std::string, double>> parameters;
};

// A Choice with its defaults filled in.
class ParameterValues {
 public:
  // The first of `variants` is the default. Throws std::invalid_argument if the choice names an
  // unknown variant or parameter, or a value is out of range; `kind` ("protocol") is the noun in
  // the error message.
  ParameterValues(std::string_view kind, std::span<const Variant> variants, const Choice& choice);

  std::string_view variant() const { return variant_->name; }
  // The value of a parameter, which the variant must have.
  double operator[](std::string_view parameter) const;

 private:
  const Variant* variant_;
  std::vector<double> values_;  // in the order of the variant's parameters
};

// The names joined by commas: "a, b"; "none" without any.
template <class Named>
std::string names_of(std::span<const Named> all) {
  std::string joined;
  for (const Named& each : all) {
    joined += (joined.empty() ? "" : ", ") + std::string(each.name);
  }
  return joined.empty() ? "none" : joined;
}

}  // namespace remy
