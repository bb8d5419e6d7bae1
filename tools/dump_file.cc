#include "dump_file.h"

#include <array>
#include <fstream>
#include <vector>

#include "dump_segment.h"
#include "dump_text.h"
#include "format/catalogue_log.h"
#include "format/magic.h"
#include "format/path_marker.h"
#include "format/small_file.h"
#include "quarry/locator.h"
#include "quarry/printable.h"

namespace quarry::dump {

namespace {

constexpr size_t kPrefixShown = 64;

Result<std::vector<uint8_t>> ReadSmall(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return Status::NotFound("cannot open " + path);
  const std::streamoff size = file.tellg();
  if (size < 0 || static_cast<uint64_t>(size) > kSmallFileMaxBytes) {
    return Status::InvalidArgument(path + " is no file that this tool knows: neither a segment nor small enough (" +
                                   Size(kSmallFileMaxBytes) + " at most)");
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(size));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), size);
  if (!file && size != 0) return Status::FromErrno(EIO, "read", path);
  return bytes;
}

void DumpStore(const CatalogueStore& store, std::ostream& out) {
  out << "table '" << Printable(store.table_name) << "', bound to ";
  if (store.tables.empty()) out << "no InnoDB table";
  for (size_t i = 0; i < store.tables.size(); ++i) out << (i == 0 ? "InnoDB table " : ", ") << store.tables[i].value;
  if (store.discarded) out << ", discarded at LSN " << store.discarded_at_lsn;
  out << (store.rebinding ? ", rebinding" : "") << ", created " << Time(store.created_micros) << ", next segment "
      << store.next_segment.value;
}

void DumpSegmentRecord(const CatalogueSegment& segment, std::ostream& out) {
  static constexpr const char* kCounted[] = {"all counted", "the needed counted", "not counted"};
  out << segment.segment.value << ": path " << segment.path_number << ", " << SegmentStateName(segment.state)
      << ", size " << Size(segment.size_bytes) << ", " << segment.extents << " extents, live "
      << Size(segment.live_bytes) << ", dead " << Size(segment.dead_bytes) << ", "
      << kCounted[static_cast<size_t>(segment.counted)];
  if (segment.plain_bytes > 0) out << ", appended plain " << Size(segment.plain_bytes);
  if (segment.encrypted_bytes > 0) {
    out << ", appended encrypted " << Size(segment.encrypted_bytes) << ", oldest key version "
        << segment.oldest_key_version;
  }
}

void DumpInstallation(const CatalogueInstallation& installation, std::ostream& out) {
  out << Hex(installation.id) << ", created " << Time(installation.created_micros) << ", next store id "
      << installation.next_store.value << ", next path number " << installation.next_path_number;
}

void DumpRecord(const CatalogueRecord& record, std::ostream& out) {
  const bool is_unknown = std::holds_alternative<CatalogueUnknown>(record);
  out << "  " << (is_unknown ? "unknown" : CatalogueTypeName(static_cast<uint16_t>(record.index() + 1))) << " ";
  std::visit(
      [&out](const auto& one) {
        using T = std::decay_t<decltype(one)>;
        if constexpr (requires { one.store; }) out << "of store " << one.store.value << " ";
        if constexpr (std::is_same_v<T, CatalogueInstallation>) DumpInstallation(one, out);
        if constexpr (std::is_same_v<T, CatalogueEnd>) DumpInstallation(one.installation, out);
        if constexpr (std::is_same_v<T, DataPath>) out << one.number << ": " << Printable(one.path);
        if constexpr (std::is_same_v<T, CatalogueStore>) DumpStore(one, out);
        if constexpr (std::is_same_v<T, CatalogueSegment>) DumpSegmentRecord(one, out);
        if constexpr (std::is_same_v<T, CatalogueSegmentGone>) out << one.segment.value;
        if constexpr (std::is_same_v<T, CatalogueDamage>) {
          out << "noted " << Time(one.noted_micros) << ": " << Printable(one.what);
        }
        if constexpr (std::is_same_v<T, CatalogueScrubPlace>) {
          out << "goes on at store " << one.next_store.value << ", segment " << one.next_segment.value << ", noted "
              << Time(one.noted_micros);
        }
        if constexpr (std::is_same_v<T, CatalogueUnknown>) out << "of type " << one.type << ", kept";
      },
      record);
  out << "\n";
}

Status DumpCatalogue(std::span<const uint8_t> file, std::ostream& out) {
  QUARRY_TRY_ASSIGN(const CatalogueFrame first, DecodeCatalogueFrame(file));
  QUARRY_TRY_ASSIGN(const CatalogueLog log, ReadCatalogueLog(file, first.generation));
  out << "CATALOGUE with " << log.records.size() << " records\n";
  for (const CatalogueRecord& record : log.records) DumpRecord(record, out);
  if (!log.has_snapshot) out << "  its snapshot is not whole: it does not count while there is another one\n";
  if (log.has_torn_tail) out << "  its last flush was cut off, and nobody was told that it had ended\n";
  for (const CatalogueLoss& loss : log.losses) {
    out << "  LOST at " << loss.offset_bytes << ": " << Printable(loss.what) << "\n";
  }
  if (log.losses.empty()) return Status::Ok();
  return Status::Corruption(log.losses[0].store.value, 0, log.losses[0].offset_bytes, log.losses[0].what);
}

Status DumpPathMarker(std::span<const uint8_t> file, std::ostream& out) {
  QUARRY_TRY_ASSIGN(const PathMarker marker, DecodePathMarker(file));
  out << "PATH of installation " << Hex(marker.installation) << "\n"
      << "  path number      " << marker.path_number << "\n"
      << "  created          " << Time(marker.created_micros) << "\n";
  return Status::Ok();
}

Status DumpOpenedRecord(std::span<const uint8_t> file, std::ostream& out) {
  QUARRY_TRY_ASSIGN(const OpenedRecord record, DecodeOpenedRecord(file));
  out << "OPENED: the home that opened this data path last\n"
      << "  inode            " << record.inode << "\n"
      << "  born             " << Time(record.birth_nanos / 1000) << "\n"
      << "  number           " << record.number << ", before " << record.number_before << "\n";
  return Status::Ok();
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Status DumpField(std::span<const uint8_t> field, std::ostream& out) {
  QUARRY_TRY_ASSIGN(const DecodedField decoded, DecodeField(field));
  if (!decoded.is_head) {
    out << "raw value of " << Size(field.size()) << " bytes: " << Quoted(field, kPrefixShown) << "\n";
    return Status::Ok();
  }
  const Locator& locator = decoded.locator;
  out << "head of " << field.size() << " bytes\n"
      << "  prefix           " << decoded.prefix.size() << " bytes: " << Quoted(decoded.prefix, kPrefixShown) << "\n"
      << "  store            " << locator.store.value << " (" << Hex64(locator.store.value) << ")\n"
      << "  segment          " << locator.segment.value << "\n"
      << "  offset           " << locator.offset_bytes << "\n"
      << "  extent size      " << Size(locator.extent_size_bytes) << "\n"
      << "  value size       " << Size(locator.value_size_bytes) << "\n"
      << "  value checksum   " << Hex64(locator.value_checksum).substr(8) << "\n";
  if (const Result<uint64_t> prefix = CheckPrefix(decoded.head()); !prefix.ok()) {
    out << "  " << prefix.status().ToString() << "\n";
  }
  return Status::Ok();
}

Status DumpHexField(const std::string& hex, std::ostream& out) {
  if (hex.size() % 2 != 0) return Status::InvalidArgument("odd number of hex digits");
  std::vector<uint8_t> field;
  for (size_t i = 0; i < hex.size(); i += 2) {
    const int high = HexDigit(hex[i]);
    const int low = HexDigit(hex[i + 1]);
    if (high < 0 || low < 0) return Status::InvalidArgument("'" + hex.substr(i, 2) + "' is no pair of hex digits");
    field.push_back(static_cast<uint8_t>(high * 16 + low));
  }
  return DumpField(field, out);
}

Status DumpFile(const std::string& path, const Options& options, std::ostream& out) {
  std::array<uint8_t, 8> start{};
  {
    std::ifstream file(path, std::ios::binary);
    if (!file) return Status::NotFound("cannot open " + path);
    file.read(reinterpret_cast<char*>(start.data()), start.size());
  }
  // A segment may be of any size, everything else is small. One whose first sector is lost is known by its name.
  const uint64_t magic = MagicOf(start);
  if (magic == kSegmentMagic || path.ends_with(".qseg")) return DumpSegment(path, options, out);
  QUARRY_TRY_ASSIGN(const std::vector<uint8_t> bytes, ReadSmall(path));
  if (static_cast<uint32_t>(magic) == kCatalogueMagic) return DumpCatalogue(bytes, out);
  if (magic == kPathMagic) return DumpPathMarker(bytes, out);
  if (magic == kOpenedMagic) return DumpOpenedRecord(bytes, out);
  if (EndsLikeHead(bytes)) return DumpField(bytes, out);
  return Status::InvalidArgument(path + " is neither a segment, a catalogue, PATH, OPENED nor a head");
}

}  // namespace quarry::dump
