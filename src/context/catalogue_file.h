// The files of the catalogue: CATALOGUE-<generation> in the home. Reading the one that counts; writing a new one.
//
// Invariants: a generation is written once, by one CatalogueWriter, and never appended to by a later life of the
// process; it counts once the end of its snapshot is durable. Thread-safety: externally synchronised.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/catalogue_log.h"
#include "format/catalogue_state.h"
#include "io/env.h"
#include "quarry/status.h"

namespace quarry {

/// "CATALOGUE-" and 16 lower-case hexadecimal digits.
[[nodiscard]] std::string CatalogueFileName(uint64_t generation);
[[nodiscard]] std::optional<uint64_t> ParseCatalogueFileName(const std::string& name);
/// Behind the name of one that another was rebuilt from.
inline constexpr const char* kRebuiltFromSuffix = ".damaged";
/// Its generation.
[[nodiscard]] std::optional<uint64_t> ParseRebuiltFromName(const std::string& name);

struct CatalogueOnDisk {
  std::vector<uint64_t> generations;  ///< of all files that there are, rising; empty: there is no catalogue
  uint64_t generation = 0;            ///< the one that was read
  uint64_t size_bytes = 0;
  bool is_whole = false;              ///< it counts
  CatalogueState state;               ///< its damage records, too
  std::vector<CatalogueLoss> losses;  ///< found now
};

/// Reads the highest generation that counts. One that is damaged and says anything may have counted, so no older one is
/// read instead; that its end is not there is a loss. Errors: kIoError; kNotSupported: a newer version wrote it.
[[nodiscard]] Result<CatalogueOnDisk> ReadCatalogue(Env* env, const std::string& home);

/// One generation while it is written.
class CatalogueWriter {
 public:
  [[nodiscard]] static Result<std::unique_ptr<CatalogueWriter>> Create(Env* env, const std::string& home,
                                                                       uint64_t generation);

  /// Writes what fills some blocks; the rest with the next call.
  [[nodiscard]] Status Add(const std::vector<CatalogueRecord>& records, bool in_snapshot);
  /// All that was added is durable when it returns ok. After an error nothing may be written any more.
  [[nodiscard]] Status Flush();

  [[nodiscard]] uint64_t generation() const { return generation_; }
  [[nodiscard]] uint64_t size_bytes() const { return position_bytes_; }

 private:
  CatalogueWriter(uint64_t generation, std::unique_ptr<WritableFile> file)
      : generation_(generation), file_(std::move(file)), encoder_(generation) {}
  [[nodiscard]] Status WriteBlocks();

  const uint64_t generation_;
  const std::unique_ptr<WritableFile> file_;
  CatalogueEncoder encoder_;
  uint64_t position_bytes_ = 0;
};

}  // namespace quarry
