#include "context/catalogue_file.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/aligned_buffer.h"
#include "io/path.h"

namespace quarry {
namespace {

constexpr char kPrefix[] = "CATALOGUE-";
constexpr size_t kDigits = 16;
constexpr uint64_t kCallBytes = 1ULL << 20;

Result<std::vector<uint8_t>> ReadWhole(Env* env, const std::string& path) {
  QUARRY_TRY_ASSIGN(const std::unique_ptr<ReadableFile> file, env->OpenForRead(path));
  QUARRY_TRY_ASSIGN(const uint64_t size, file->SizeBytes());
  std::vector<uint8_t> bytes;
  while (bytes.size() < size) {
    const size_t at = bytes.size();
    const auto wanted = static_cast<size_t>(std::min(kCallBytes, size - at));
    bytes.resize(at + wanted);
    QUARRY_TRY_ASSIGN(const size_t read, file->ReadAt(at, std::span(bytes).subspan(at)));
    bytes.resize(at + read);
    if (read < wanted) break;  // shorter than it said
  }
  return bytes;
}

struct Generation {
  uint64_t number = 0;
  uint64_t size_bytes = 0;
  CatalogueLog log;
};

Result<Generation> ReadGeneration(Env* env, const std::string& home, uint64_t number) {
  QUARRY_TRY_ASSIGN(const std::vector<uint8_t> bytes, ReadWhole(env, JoinPath(home, CatalogueFileName(number))));
  Result<CatalogueLog> log = ReadCatalogueLog(bytes, number);
  if (!log.ok()) return log.status().WithContext(CatalogueFileName(number));
  return Generation{number, bytes.size(), std::move(log).value()};
}

}  // namespace

std::string CatalogueFileName(uint64_t generation) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string name = kPrefix;
  for (size_t digit = kDigits; digit-- > 0;) name += kHex[(generation >> (4 * digit)) & 15U];
  return name;
}

std::optional<uint64_t> ParseCatalogueFileName(const std::string& name) {
  if (!name.starts_with(kPrefix) || name.size() != sizeof(kPrefix) - 1 + kDigits) return std::nullopt;
  uint64_t generation = 0;
  for (const char digit : name.substr(sizeof(kPrefix) - 1)) {
    const bool is_decimal = digit >= '0' && digit <= '9';
    if (!is_decimal && (digit < 'a' || digit > 'f')) return std::nullopt;
    generation = generation * 16 + static_cast<uint64_t>(is_decimal ? digit - '0' : digit - 'a' + 10);
  }
  return generation;
}

std::optional<uint64_t> ParseRebuiltFromName(const std::string& name) {
  if (!name.ends_with(kRebuiltFromSuffix)) return std::nullopt;
  return ParseCatalogueFileName(name.substr(0, name.size() - std::strlen(kRebuiltFromSuffix)));
}

Result<CatalogueOnDisk> ReadCatalogue(Env* env, const std::string& home) {
  QUARRY_TRY_ASSIGN(const std::vector<std::string> names, env->ListDirectory(home));
  CatalogueOnDisk found;
  for (const std::string& name : names) {
    if (const auto generation = ParseCatalogueFileName(name)) found.generations.push_back(*generation);
  }
  std::sort(found.generations.begin(), found.generations.end());
  std::optional<Generation> chosen;
  for (auto number = found.generations.rbegin(); number != found.generations.rend(); ++number) {
    QUARRY_TRY_ASSIGN(Generation generation, ReadGeneration(env, home, *number));
    const bool counts = generation.log.has_snapshot;
    const bool is_damaged = !generation.log.losses.empty();
    // A power cut leaves one that is not whole, and the one before it. Damage leaves one that may have counted, and
    // then what there is of older ones is out of date.
    if (!counts && is_damaged && generation.log.records.empty()) {
      found.losses.push_back({{}, 0, CatalogueFileName(*number) + " does not verify"});
    }
    const bool is_last_word = counts || (is_damaged && !generation.log.records.empty());
    if (is_last_word || (!chosen && !generation.log.records.empty())) chosen = std::move(generation);
    if (is_last_word) break;
  }
  if (!chosen) {
    if (!found.generations.empty()) found.losses.push_back({{}, 0, "no record of any catalogue file verifies"});
    return found;
  }
  found.generation = chosen->number;
  found.size_bytes = chosen->size_bytes;
  for (const CatalogueRecord& record : chosen->log.records) found.state.Apply(record);
  std::move(chosen->log.losses.begin(), chosen->log.losses.end(), std::back_inserter(found.losses));
  found.is_whole = chosen->log.has_snapshot;
  if (!found.is_whole) found.losses.push_back({{}, 0, "the end of its snapshot is not there"});
  return found;
}

Result<std::unique_ptr<CatalogueWriter>> CatalogueWriter::Create(Env* env, const std::string& home,
                                                                 uint64_t generation) {
  QUARRY_TRY_ASSIGN(std::unique_ptr<WritableFile> file, env->CreateFile(JoinPath(home, CatalogueFileName(generation))));
  return std::unique_ptr<CatalogueWriter>(new CatalogueWriter(generation, std::move(file)));
}

Status CatalogueWriter::Add(const std::vector<CatalogueRecord>& records, bool in_snapshot) {
  for (const CatalogueRecord& record : records) {
    encoder_.Add(record, in_snapshot);
    if (encoder_.buffered_bytes() >= kCallBytes) QUARRY_TRY(WriteBlocks());
  }
  return Status::Ok();
}

Status CatalogueWriter::Flush() {
  encoder_.EndFlush();
  QUARRY_TRY(WriteBlocks());
  return file_->Sync();
}

Status CatalogueWriter::WriteBlocks() {
  const std::vector<uint8_t> blocks = encoder_.TakeBlocks();
  if (blocks.empty()) return Status::Ok();
  AlignedBuffer buffer(blocks.size());
  std::memcpy(buffer.data(), blocks.data(), blocks.size());
  QUARRY_TRY(file_->WriteAt(position_bytes_, buffer.span()));
  position_bytes_ += blocks.size();
  return Status::Ok();
}

}  // namespace quarry
