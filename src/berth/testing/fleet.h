// What fleet's tests share: four fleets with the figures that the reference model gives for them
// (tests/data/fleets).
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "berth/base/json.h"
#include "berth/fleet/fleet.h"
#include "paths.h"

namespace berth::fleet::testing {

/// All of a file, which must be there. (Defined in document_test.cc: the storey itself is pure.)
std::string text_of(const std::string& path);

inline std::string data_path(const std::string& fleet, const std::string& file) {
  return tests::source_path("tests/data/fleets/") + fleet + "/" + file;
}

inline std::vector<Document> documents_of(const std::string& fleet) {
  std::vector<Document> documents;
  for (const char* file : {"accelerator-data.json", "capacity-data.json", "model-data.json",
                           "optimizer-data.json", "server-data.json", "serviceclass-data.json"})
    documents.push_back({file, text_of(data_path(fleet, file))});
  return documents;
}

inline System read(const std::vector<Document>& documents) {
  auto reading = read_documents(documents);
  EXPECT_TRUE(reading) << reading.error().message;
  return reading ? reading->system : System{};
}

inline System fleet(const std::string& name) {
  return read(documents_of(name));
}

inline Json expected(const std::string& name) {
  return *parse_json(text_of(data_path(name, "expected.json")));
}

/// Within 2·10⁻³ of each other: the figures were computed in single precision.
inline bool near(double a, double b) {
  return std::abs(a - b) <= 2e-3 * std::max({std::abs(a), std::abs(b), 1e-9});
}

}  // namespace berth::fleet::testing
