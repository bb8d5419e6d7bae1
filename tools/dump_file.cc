#include "dump_file.h"

#include <array>
#include <fstream>
#include <vector>

#include "dump_segment.h"
#include "dump_text.h"
#include "format/directory_file.h"
#include "format/magic.h"
#include "format/manifest.h"
#include "format/small_file.h"
#include "quarry/locator.h"

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

Status DumpManifest(std::span<const uint8_t> file, std::ostream& out) {
  QUARRY_TRY_ASSIGN(const Manifest manifest, DecodeManifest(file, StoreId{0}));
  out << "MANIFEST of store " << manifest.store.value << " (" << Hex64(manifest.store.value) << ")\n"
      << "  table name       " << manifest.table_name << "\n"
      << "  bound to         ";
  if (manifest.tables.empty()) out << "no InnoDB table";
  for (size_t i = 0; i < manifest.tables.size(); ++i)
    out << (i == 0 ? "InnoDB table " : ", ") << manifest.tables[i].value;
  out << "\n  state            " << (manifest.discarded ? "discarded" : "in use");
  if (manifest.discarded) out << " at LSN " << manifest.discarded_at_lsn;
  out << (manifest.rebinding ? ", rebinding" : "") << "\n"
      << "  created          " << Time(manifest.created_micros) << "\n"
      << "  sequence         " << manifest.sequence << "\n"
      << "  next segment     " << manifest.next_segment.value << "\n"
      << "  segments         " << manifest.segments.size() << "\n";
  for (const ManifestSegment& segment : manifest.segments) {
    out << "    segment " << segment.segment.value << ": path " << segment.path_number << ", "
        << SegmentStateName(segment.state) << ", size " << Size(segment.size_bytes) << ", " << segment.extents
        << " extents, live " << Size(segment.live_bytes) << ", dead " << Size(segment.dead_bytes) << ", checkpoint at "
        << segment.checkpoint_position_bytes << (segment.has_uncounted ? ", may hold uncounted extents" : "") << "\n";
  }
  return Status::Ok();
}

Status DumpDirectory(std::span<const uint8_t> file, std::ostream& out) {
  QUARRY_TRY_ASSIGN(const DirectoryFile directory, DecodeDirectoryFile(file));
  out << "DIRECTORY of installation " << Hex(directory.installation) << "\n"
      << "  created          " << Time(directory.created_micros) << "\n"
      << "  next store id    " << directory.next_store.value << "\n"
      << "  next path number " << directory.next_path_number << "\n"
      << "  data paths       " << directory.paths.size() << "\n";
  for (const DataPath& path : directory.paths) out << "    path " << path.number << ": " << path.path << "\n";
  return Status::Ok();
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
  // A segment may be of any size, everything else is small.
  const uint64_t magic = MagicOf(start);
  if (magic == kSegmentMagic) return DumpSegment(path, options, out);
  QUARRY_TRY_ASSIGN(const std::vector<uint8_t> bytes, ReadSmall(path));
  if (magic == kManifestMagic) return DumpManifest(bytes, out);
  if (magic == kDirectoryMagic) return DumpDirectory(bytes, out);
  if (magic == kPathMagic) return DumpPathMarker(bytes, out);
  if (magic == kOpenedMagic) return DumpOpenedRecord(bytes, out);
  if (EndsLikeHead(bytes)) return DumpField(bytes, out);
  return Status::InvalidArgument(path + " is neither a segment, MANIFEST, DIRECTORY, PATH, OPENED nor a head");
}

}  // namespace quarry::dump
