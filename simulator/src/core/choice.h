#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace remy {

// A number that a protocol, a body or a queue can be told.
struct Parameter {
  std::string_view name;     // with its unit, as in target_ms
  std::string_view meaning;  // a few words
  double usual = 0;
  double minimum = 0;
  double maximum = 0;
};

// A way of doing what a name stands for, by the authority that describes it.
struct Variant {
  std::string_view name;
  std::string_view source;
  std::vector<Parameter> parameters;
};

// What somebody asks for: a variant, or none for the usual one, and some parameters.
struct Choice {
  std::string name;
  std::string variant;
  std::vector<std::pair<std::string, double>> parameters;
};

// A choice with all that it left open. Parameters are in the variant's order.
class Chosen {
 public:
  // Throws std::invalid_argument with one sentence if there is no such variant or parameter, or a
  // parameter is out of its range. `kind` is what the sentence calls it ("protocol").
  Chosen(std::string_view kind, std::span<const Variant> variants, const Choice& choice);

  std::string_view variant() const { return variant_->name; }
  // The variant must have it.
  double operator[](std::string_view parameter) const;

 private:
  const Variant* variant_;
  std::vector<double> values_;
};

// The names in a sentence: "a, b".
template <class Named>
std::string names_of(std::span<const Named> all) {
  std::string joined;
  for (const Named& each : all) {
    joined += (joined.empty() ? "" : ", ") + std::string(each.name);
  }
  return joined.empty() ? "none" : joined;
}

}  // namespace remy
