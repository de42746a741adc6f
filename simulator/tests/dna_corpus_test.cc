#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "../fuzz/dna_round_trip.h"
#include "random_cases.h"

// Checks the fuzzer's invariant on its corpus and on mutations of it, for machines without a
// fuzzer.
namespace remy {
namespace {

// Sorted by name, so that a mutation depends on its seed and not on directory order.
std::map<std::string, std::string> read_corpus() {
  std::map<std::string, std::string> corpus;
  for (const auto& entry : std::filesystem::directory_iterator(REMY_FUZZ_CORPUS "/dna")) {
    std::ifstream file(entry.path(), std::ios::binary);
    corpus[entry.path().filename().string()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return corpus;
}

class Mutator {
 public:
  Mutator(std::uint64_t seed, const std::vector<std::string>& valid,
          const std::vector<std::string>& all)
      : random_(seed), valid_(valid), all_(all) {}

  std::string mutate() {
    std::string bytes = pick(valid_);
    for (std::uint32_t changes = random_.integer(1, 4); changes > 0; --changes) {
      change(bytes);
    }
    return bytes;
  }

 private:
  const std::string& pick(const std::vector<std::string>& inputs) {
    return inputs[position(inputs.size())];
  }

  std::size_t position(std::size_t size) {
    return size == 0 ? 0 : random_.integer(0, static_cast<std::uint32_t>(size - 1));
  }

  std::string slice(const std::string& bytes) {
    const std::size_t start = position(bytes.size());
    return bytes.substr(start, random_.integer(0, 40));
  }

  void change(std::string& bytes) {
    const std::size_t at = position(bytes.size());
    switch (random_.integer(0, 5)) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        bytes.erase(at, random_.integer(1, 20));
        break;
      case 2:
        bytes.insert(at, slice(bytes));
        break;
      case 3:
        bytes.insert(at, slice(pick(all_)));
        break;
      default:
        if (!bytes.empty()) {
          bytes[at] =
              static_cast<char>(random_.chance(0.5) ? bytes[at] ^ (1 << random_.integer(0, 7))
                                                    : random_.integer(0, 255));
        }
    }
  }

  RandomCase random_;
  const std::vector<std::string>& valid_;
  const std::vector<std::string>& all_;
};

TEST(DnaCorpus, FilesAreAcceptedOrRejectedAsTheirNamesSay) {
  const auto corpus = read_corpus();
  ASSERT_GE(corpus.size(), 40U);
  for (const auto& [name, bytes] : corpus) {
    const bool is_valid = name.starts_with("valid-");
    EXPECT_EQ(dna_round_trips(bytes), is_valid) << name;
  }
}

TEST(DnaCorpus, MutationsAreRejectedOrRoundTrip) {
  std::vector<std::string> valid;
  std::vector<std::string> all;
  for (const auto& [name, bytes] : read_corpus()) {
    all.push_back(bytes);
    if (name.starts_with("valid-")) {
      valid.push_back(bytes);
    }
  }
  int read = 0;
  constexpr int kMutations = 20'000;
  for (std::uint64_t seed = 0; seed < kMutations; ++seed) {
    const std::string bytes = Mutator(seed, valid, all).mutate();
    try {
      read += dna_round_trips(bytes) ? 1 : 0;
    } catch (const std::exception& error) {
      ADD_FAILURE() << "seed " << seed << ": " << error.what();
    }
  }
  EXPECT_GT(read, kMutations / 100) << "nearly all mutations are refused: they test little";
}

}  // namespace
}  // namespace remy
