#include "core/choice.h"

#include <algorithm>
#include <cstdio>

#include "core/requirement.h"

namespace remy {

namespace {

std::string format_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

template <class Named>
const Named* find(std::span<const Named> all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &Named::name);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

ParameterValues::ParameterValues(std::string_view kind, std::span<const Variant> variants,
                                 const Choice& choice)
    : variant_(choice.variant.empty() ? &variants.front() : find(variants, choice.variant)) {
  const std::string subject = std::string(kind) + " " + choice.name;
  if (variant_ == nullptr) {
    refuse(subject + " has no variant \"" + choice.variant +
           "\"; there are: " + names_of(variants));
  }
  for (const Parameter& parameter : variant_->parameters) {
    values_.push_back(parameter.default_value);
  }
  const std::span<const Parameter> parameters(variant_->parameters);
  for (const auto& [name, value] : choice.parameters) {
    const Parameter* const parameter = find(parameters, name);
    if (parameter == nullptr) {
      refuse(subject + ", variant " + std::string(variant_->name) + ", has no parameter \"" + name +
             "\"; there are: " + names_of(parameters));
    }
    if (!(value >= parameter->minimum && value <= parameter->maximum)) {
      refuse(subject + ": " + name + " must be from " + format_number(parameter->minimum) + " to " +
             format_number(parameter->maximum) + ", not " + format_number(value));
    }
    values_[static_cast<std::size_t>(parameter - parameters.data())] = value;
  }
}

double ParameterValues::operator[](std::string_view parameter) const {
  const std::span<const Parameter> parameters(variant_->parameters);
  return values_.at(static_cast<std::size_t>(find(parameters, parameter) - parameters.data()));
}

}  // namespace remy
