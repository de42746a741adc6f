#pragma once

#include <nanobind/nanobind.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace remy {

// Columns are little-endian bytes, like the numbers in memory.
static_assert(std::endian::native == std::endian::little);

template <class Number>
nanobind::bytes column(const std::vector<Number>& numbers) {
  return nanobind::bytes(numbers.data(), numbers.size() * sizeof(Number));
}

// A column of one member of each row.
template <class Row>
nanobind::bytes column(const std::vector<Row>& rows, double Row::* member) {
  std::vector<double> numbers;
  numbers.reserve(rows.size());
  for (const Row& row : rows) {
    numbers.push_back(row.*member);
  }
  return column(numbers);
}

template <class Row>
std::vector<std::uint64_t> integer_column(const std::vector<Row>& rows,
                                          std::uint64_t Row::* member) {
  std::vector<std::uint64_t> numbers;
  numbers.reserve(rows.size());
  for (const Row& row : rows) {
    numbers.push_back(row.*member);
  }
  return numbers;
}

// Inverse of column(). Throws std::invalid_argument with the column's name.
template <class Number>
std::vector<Number> from_column(const nanobind::bytes& column, const char* name) {
  if (column.size() % sizeof(Number) != 0) {
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(column.size()) +
                                " bytes, which is not a multiple of " +
                                std::to_string(sizeof(Number)));
  }
  std::vector<Number> numbers(column.size() / sizeof(Number));
  std::memcpy(numbers.data(), column.c_str(), column.size());
  return numbers;
}

}  // namespace remy
