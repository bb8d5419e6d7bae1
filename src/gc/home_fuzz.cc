// A whole home whose files somebody has changed: catalogue, segments (plain, encrypted, rewritten), markers. It is
// opened, read by true and by lying heads, verified, collected and opened again: whatever the files say, no crash, no
// other value than the one that was written, and nothing of a segment that verifies is given back.
//
// The input is a list of changes of eight bytes each: file, kind, offset, value. Kinds with the high bit set put the
// checksum of a segment header right afterwards, so that what stands behind it is believed: that of the copy when the
// change is in the file's last block.
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/fuzz_check.h"
#include "format/extent.h"
#include "format/segment_header.h"
#include "format/test_cipher.h"
#include "io/memory_env.h"
#include "io/path.h"
#include "quarry/gc.h"
#include "store/installation_verify.h"
#include "store/store_directory_impl.h"

using namespace quarry;  // NOLINT(google-build-using-namespace)

namespace {

constexpr size_t kChangeBytes = 8;
constexpr size_t kChangesMax = 16;
constexpr uint64_t kFileMaxBytes = 4ULL << 20;

using Files = std::map<std::string, std::vector<uint8_t>>;

struct Value {
  Locator locator;
  std::vector<uint8_t> bytes;
};

std::shared_ptr<TestCipherProvider> Keys() {
  auto keys = std::make_shared<TestCipherProvider>();
  keys->Rotate(1, 0x1111);
  return keys;
}

DirectoryOptions Options() {
  DirectoryOptions options;
  options.home_path = "/home";
  options.data_paths = {"/disk"};
  options.segment_size_bytes = 64ULL << 10;
  options.zeroed_pool_bytes = 0;
  options.value_cache_bytes = 0;
  options.cipher_provider = Keys();
  return options;
}

std::vector<uint8_t> Bytes(size_t size, uint64_t seed) {
  std::vector<uint8_t> bytes(size);
  for (size_t i = 0; i < size; ++i) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    bytes[i] = i % 3 == 0 ? uint8_t{'x'} : static_cast<uint8_t>(seed >> 56U);
  }
  return bytes;
}

void Take(Env* env, const std::string& directory, Files* files) {
  const std::vector<std::string> names = env->ListDirectory(directory).value();
  for (const std::string& name : names) {
    const std::string path = JoinPath(directory, name);
    if (env->ListDirectory(path).ok()) {
      Take(env, path, files);
    } else {
      (*files)[path] = env->ReadSmallFile(path, kFileMaxBytes).value();
    }
  }
}

/// What every input begins with.
class Original {
 public:
  Original() {
    MemoryEnv env;
    Must(env.CreateDirectory("/disk"));
    for (int start = 0; start < 2; ++start) {
      auto directory = StoreDirectoryImpl::Open(Options(), {&env, false}).value();
      for (uint64_t table = 1; table <= 3; ++table) Fill(directory.get(), table);
      if (start == 1) RewriteFirst(directory.get());
    }
    Take(&env, "/home", &files_);
    Take(&env, "/disk", &files_);
    for (const auto& [path, bytes] : files_) names_.push_back(path);
  }
  [[nodiscard]] const Files& files() const { return files_; }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] const std::vector<Value>& values() const { return values_; }

 private:
  static void Must(const Status& status) { FuzzCheck(status.ok(), status.ToString().c_str()); }

  void Fill(StoreDirectory* directory, uint64_t table) {
    const auto store = directory->OpenForAppend({table}, "db/t").value();
    UnsyncedExtents unsynced;
    for (const size_t size : {size_t{50}, size_t{700}, size_t{9000}}) {
      AppendOptions options;
      options.part_size_bytes = 4096;
      options.codec = table == 2 ? Codec::kLz4 : Codec::kNone;
      options.encryption_key_id = table == 3 ? 1 : 0;
      Value value{{}, Bytes(size, table * 1000 + values_.size())};
      value.locator = store->Append(value.bytes, options, &unsynced).value();
      values_.push_back(std::move(value));
    }
    Must(directory->Sync(unsynced));
  }

  // Its small values go; the rest is packed, and encrypted.
  void RewriteFirst(StoreDirectory* directory) {
    const StoreId store = values_.front().locator.store;
    const std::vector<StoreId> stores = {store};
    const auto pass = BeginGcPass(directory, stores, {.rewrite_above = 1.01}).value();
    std::erase_if(values_,
                  [store](const Value& value) { return value.locator.store == store && value.bytes.size() == 50; });
    for (const Value& value : values_) pass->Mark(value.locator);
    pass->SetEncryption(store, {1, 0});
    while (!pass->ReclaimSome(UINT64_MAX).value().done) {
    }
    FuzzCheck(pass->report().segments_rewritten > 0, "a rewritten segment is among the files");
  }

  Files files_;
  std::vector<std::string> names_;
  std::vector<Value> values_;
};

uint64_t EdgeValue(uint16_t choice) {
  static constexpr uint64_t kEdges[] = {0,         1,    UINT64_MAX, INT64_MAX, UINT32_MAX,
                                        INT32_MAX, 4095, 4096,       4097,      1ULL << 40};
  return kEdges[choice % std::size(kEdges)];
}

void Change(const Original& original, std::span<const uint8_t> change, Files* files) {
  const auto found = files->find(original.names()[change[0] % original.names().size()]);
  if (found == files->end()) return;
  std::vector<uint8_t>& file = found->second;
  const auto value = LoadLittleEndian<uint16_t>(change, 6);
  const size_t offset = file.empty() ? 0 : LoadLittleEndian<uint32_t>(change, 2) % file.size();
  const auto room = [&file, offset](size_t size) { return std::min(size, file.size() - offset); };
  switch ((change[1] & 0x7fU) % 6) {
    case 0:
      if (!file.empty()) file[offset] ^= static_cast<uint8_t>(value | 1U);
      break;
    case 1: {
      const uint64_t edge = EdgeValue(value);
      std::memcpy(file.data() + offset, &edge, room(sizeof edge));
      break;
    }
    case 2:
      file.resize(offset);
      break;
    case 3: {  // a piece of another file, or of another place
      const std::vector<uint8_t>& from = original.files().at(original.names()[value % original.names().size()]);
      const size_t size = std::min(room(256), from.size());
      std::copy_n(from.begin(), size, file.begin() + static_cast<ptrdiff_t>(offset));
      break;
    }
    case 4:
      files->erase(found);
      return;
    default:
      std::fill_n(file.begin() + static_cast<ptrdiff_t>(offset), room(4096), uint8_t{0});
      break;
  }
  const bool is_segment = found->first.ends_with(".qseg") && file.size() >= kSegmentHeaderSizeBytes;
  if ((change[1] & 0x80U) != 0 && is_segment) {
    const size_t last = file.size() - kSegmentHeaderSizeBytes;
    const std::span<uint8_t> block = std::span(file).subspan(offset < last ? 0 : last, kSegmentHeaderSizeBytes);
    Reseal(block, kSegmentHeaderSizeBytes - sizeof(uint64_t));
  }
}

void Put(MemoryEnv* env, const Files& files) {
  for (const auto& [path, bytes] : files) {
    for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
      (void)env->CreateDirectory(path.substr(0, slash));
    }
    (void)env->ReplaceFile(path, bytes);
  }
}

/// Which of the values were read. One that is not the value that was written is a finding.
std::vector<bool> ReadAll(StoreDirectory* directory, const std::vector<Value>& values) {
  std::vector<bool> read;
  for (const Value& value : values) {
    std::vector<uint8_t> out(value.bytes.size());
    read.push_back(directory->Read(value.locator, {}, out).ok());
    FuzzCheck(!read.back() || out == value.bytes, "what is read is what was written");
    Locator lie = value.locator;
    lie.offset_bytes += kExtentAlignmentBytes;
    (void)directory->Read(lie, {}, out);
    lie = value.locator;
    lie.extent_size_bytes *= 2;
    (void)directory->Read(lie, {}, out);
    std::vector<uint8_t> range(10);
    if (value.bytes.size() > 40 && directory->ReadRange(value.locator, 20, {}, range).ok()) {
      FuzzCheck(std::equal(range.begin(), range.end(), value.bytes.begin() + 20), "a range is what was written");
    }
  }
  return read;
}

class Nobody : public VerifyObserver {
 public:
  void Found(const Finding&) override {}
  [[nodiscard]] bool Progress(const VerifyProgress&) override { return true; }
};

void Collect(StoreDirectory* directory, const std::vector<Value>& values) {
  std::vector<StoreId> stores;
  for (const StoreStats& stats : directory->ListStores()) stores.push_back(stats.store);
  const auto pass = BeginGcPass(directory, stores, {.rewrite_above = 1.01});
  if (!pass.ok()) return;
  for (const Value& value : values) (*pass)->Mark(value.locator);
  for (const StoreId store : stores) (*pass)->SetEncryption(store, {1, 1});
  for (int step = 0; step < 100; ++step) {
    const Result<GcStep> done = (*pass)->ReclaimSome(UINT64_MAX);
    if (!done.ok() || done->done) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Original original;
  Files files = original.files();
  const std::span<const uint8_t> input(data, std::min(size, kChangesMax * kChangeBytes));
  for (size_t at = 0; at + kChangeBytes <= input.size(); at += kChangeBytes) {
    Change(original, input.subspan(at, kChangeBytes), &files);
  }
  MemoryEnv env;
  (void)env.CreateDirectory("/home");
  (void)env.CreateDirectory("/disk");
  Put(&env, files);
  Nobody observer;
  (void)VerifyInstallationFiles(&env, {"/home", {"/disk"}}, &observer);
  std::vector<bool> before;
  {
    const auto directory = StoreDirectoryImpl::Open(Options(), {&env, false});
    if (!directory.ok()) return 0;
    before = ReadAll(directory->get(), original.values());
    Collect(directory->get(), original.values());
    const std::vector<bool> after = ReadAll(directory->get(), original.values());
    for (size_t i = 0; i < before.size(); ++i)
      FuzzCheck(!before[i] || after[i], "a pass takes nothing that was marked");
  }
  const auto again = StoreDirectoryImpl::Open(Options(), {&env, false});
  if (!again.ok()) return 0;
  const std::vector<bool> after = ReadAll(again->get(), original.values());
  for (size_t i = 0; i < before.size(); ++i) FuzzCheck(!before[i] || after[i], "a start takes nothing that was read");
  return 0;
}
