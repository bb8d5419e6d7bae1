#include "format/catalogue_record.h"

#include <algorithm>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/zeros.h"
#include "format/magic.h"
#include "format/small_file.h"

namespace quarry {
namespace {

constexpr size_t kFrameChecksumOffset = 40;
constexpr uint16_t kKnownFlags = kCatalogueOptionalFlag | kCatalogueSnapshotFlag;

constexpr uint16_t kRebindingFlag = 1;
constexpr uint16_t kDiscardedFlag = 2;
constexpr uint16_t kPrefixLimitFlag = 4;
constexpr uint16_t kKnownStoreFlags = kRebindingFlag | kDiscardedFlag | kPrefixLimitFlag;

uint64_t RoundUpTo8(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

/// A record's type is its place in the variant, from 1.
template <typename T, typename... Types>
constexpr uint16_t TypeAmong(const std::variant<Types...>*) {
  uint16_t type = 1;
  bool found = false;
  ((found = found || std::is_same_v<T, Types>, type = static_cast<uint16_t>(type + (found ? 0 : 1))), ...);
  return type;
}
template <typename T>
constexpr uint16_t TypeOf() {
  return TypeAmong<T>(static_cast<const CatalogueRecord*>(nullptr));
}
static_assert(TypeOf<CatalogueInstallation>() == 1 && TypeOf<CatalogueEnd>() == kCatalogueEndType);
static_assert(TypeOf<CatalogueScrubPlace>() == kCatalogueScrubType);
static_assert(TypeOf<CatalogueUnknown>() == kCatalogueUnknownTypeMin);

struct Encoded {
  uint16_t type = 0;
  uint16_t flags = 0;
  StoreId store;
  std::vector<uint8_t> body;
};

void PutInstallation(const CatalogueInstallation& installation, ByteWriter* body) {
  body->Bytes(installation.id);
  body->U64(installation.created_micros);
  body->U64(installation.next_store.value);
  body->U32(installation.next_path_number);
  body->U32(0);
}

void Put(const CatalogueInstallation& record, Encoded*, ByteWriter* body) { PutInstallation(record, body); }

void Put(const DataPath& record, Encoded*, ByteWriter* body) {
  body->U32(record.number);
  body->String(record.path);
}

void Put(const CatalogueStore& record, Encoded* encoded, ByteWriter* body) {
  encoded->store = record.store;
  body->U64(record.created_micros);
  body->U64(record.discarded_at_lsn);
  body->U32(record.next_segment.value);
  body->U16(static_cast<uint16_t>((record.rebinding ? kRebindingFlag : 0) | (record.discarded ? kDiscardedFlag : 0) |
                                  (record.prefix_limit_bytes ? kPrefixLimitFlag : 0)));
  body->U16(record.prefix_limit_bytes.value_or(0));
  body->String(record.table_name);
  body->U32(static_cast<uint32_t>(record.tables.size()));
  for (const TableId table : record.tables) body->U64(table.value);
}

void Put(const CatalogueStoreGone& record, Encoded* encoded, ByteWriter*) { encoded->store = record.store; }

void Put(const CatalogueSegment& record, Encoded* encoded, ByteWriter* body) {
  encoded->store = record.store;
  body->U32(record.segment.value);
  body->U32(record.path_number);
  body->U8(static_cast<uint8_t>(record.state));
  body->U8(static_cast<uint8_t>(record.counted));
  body->U16(0);
  body->U32(record.oldest_key_version);
  body->Bytes(record.salt);
  body->U64(record.size_bytes);
  body->U64(record.extents);
  body->U64(record.live_bytes);
  body->U64(record.dead_bytes);
  body->U64(record.plain_bytes);
  body->U64(record.encrypted_bytes);
}

void Put(const CatalogueSegmentGone& record, Encoded* encoded, ByteWriter* body) {
  encoded->store = record.store;
  body->U32(record.segment.value);
  body->U32(0);
}

void Put(const CatalogueDamage& record, Encoded* encoded, ByteWriter* body) {
  encoded->store = record.store;
  body->U64(record.noted_micros);
  body->String(record.what);
}

void Put(const CatalogueEnd& record, Encoded*, ByteWriter* body) { PutInstallation(record.installation, body); }

void Put(const CatalogueScrubPlace& record, Encoded*, ByteWriter* body) {
  body->U64(record.next_store.value);
  body->U32(record.next_segment.value);
  body->U32(0);
  body->U64(record.noted_micros);
}

void Put(const CatalogueUnknown& record, Encoded* encoded, ByteWriter* body) {
  encoded->type = record.type;
  encoded->flags = kCatalogueOptionalFlag;
  encoded->store = record.store;
  body->Bytes(record.body);
}

Encoded EncodeBody(const CatalogueRecord& record) {
  Encoded encoded;
  encoded.type = static_cast<uint16_t>(record.index() + 1);
  ByteWriter body;
  std::visit([&](const auto& one) { Put(one, &encoded, &body); }, record);
  encoded.body = std::move(body).Take();
  return encoded;
}

// ---- decoding; empty: it is possible, else what is wrong with it ----

template <size_t size>
void Take(ByteReader* body, std::array<uint8_t, size>* out) {
  const std::span<const uint8_t> bytes = body->Bytes(size);
  std::copy(bytes.begin(), bytes.end(), out->begin());
}

std::string Get(ByteReader* body, CatalogueInstallation* record) {
  Take(body, &record->id);
  record->created_micros = body->U64();
  record->next_store = StoreId{body->U64()};
  record->next_path_number = body->U32();
  if (body->U32() != 0) return "has reserved bytes";
  if (record->next_store.value == 0 || record->next_path_number == 0) return "hands out number 0";
  return {};
}

std::string Get(ByteReader* body, DataPath* record) {
  record->number = body->U32();
  record->path = body->String(kNameMaxBytes);
  if (record->number == 0) return "names data path 0";
  if (record->path.empty() || record->path.find('\0') != std::string::npos) return "has an impossible data path";
  return {};
}

std::string Get(ByteReader* body, CatalogueStore* record) {
  record->created_micros = body->U64();
  record->discarded_at_lsn = body->U64();
  record->next_segment = SegmentNumber{body->U32()};
  const uint16_t flags = body->U16();
  const uint16_t prefix_limit = body->U16();
  record->rebinding = (flags & kRebindingFlag) != 0;
  record->discarded = (flags & kDiscardedFlag) != 0;
  if ((flags & kPrefixLimitFlag) != 0) record->prefix_limit_bytes = prefix_limit;
  record->table_name = body->String(kNameMaxBytes);
  const uint32_t count = body->Count(sizeof(uint64_t));
  for (uint32_t i = 0; i < count; ++i) record->tables.push_back(TableId{body->U64()});
  if ((flags & ~kKnownStoreFlags) != 0) return "has unknown flags";
  if ((flags & kPrefixLimitFlag) == 0 && prefix_limit != 0) return "has a prefix limit that is not stated";
  if (record->discarded_at_lsn != 0 && !record->discarded) return "has a discard LSN but is not discarded";
  if (record->store.value == 0 || record->next_segment.value == 0) return "names no store or segment";
  return {};
}

std::string Get(ByteReader*, CatalogueStoreGone* record) { return record->store.value == 0 ? "names no store" : ""; }

std::string Get(ByteReader* body, CatalogueSegment* record) {
  record->segment = SegmentNumber{body->U32()};
  record->path_number = body->U32();
  const uint8_t state = body->U8();
  const uint8_t counted = body->U8();
  const uint16_t reserved = body->U16();
  record->oldest_key_version = body->U32();
  Take(body, &record->salt);
  record->size_bytes = body->U64();
  record->extents = body->U64();
  record->live_bytes = body->U64();
  record->dead_bytes = body->U64();
  record->plain_bytes = body->U64();
  record->encrypted_bytes = body->U64();
  if (state > static_cast<uint8_t>(SegmentState::kPoisoned)) return "has a segment of unknown state";
  if (counted > static_cast<uint8_t>(CountedExtents::kEstimated)) return "has counters of unknown meaning";
  record->state = static_cast<SegmentState>(state);
  record->counted = static_cast<CountedExtents>(counted);
  if (reserved != 0) return "has reserved bytes";
  if (record->store.value == 0 || record->segment.value == 0) return "names no store or segment";
  return {};
}

std::string Get(ByteReader* body, CatalogueSegmentGone* record) {
  record->segment = SegmentNumber{body->U32()};
  if (body->U32() != 0) return "has reserved bytes";
  if (record->store.value == 0 || record->segment.value == 0) return "names no store or segment";
  return {};
}

std::string Get(ByteReader* body, CatalogueDamage* record) {
  record->noted_micros = body->U64();
  record->what = body->String(kNameMaxBytes);
  return {};
}

std::string Get(ByteReader* body, CatalogueEnd* record) { return Get(body, &record->installation); }

std::string Get(ByteReader* body, CatalogueScrubPlace* record) {
  record->next_store = StoreId{body->U64()};
  record->next_segment = SegmentNumber{body->U32()};
  if (body->U32() != 0) return "has reserved bytes";
  record->noted_micros = body->U64();
  return {};
}

std::string NameOf(const CatalogueFrame& frame) {
  std::string name = "catalogue record " + std::to_string(frame.sequence) + " (" + CatalogueTypeName(frame.type);
  if (frame.store.value != 0) name += ", store " + std::to_string(frame.store.value);
  return name + ")";
}

template <typename T>
Result<CatalogueRecord> Decode(const CatalogueFrame& frame, std::span<const uint8_t> body) {
  T record{};
  constexpr bool has_store = requires { record.store; };
  if constexpr (has_store) record.store = frame.store;
  ByteReader reader(body);
  std::string fault = Get(&reader, &record);
  if (!reader.ok() || reader.remaining() != 0) fault = "has a body of the wrong length";
  if (!has_store && frame.store.value != 0) fault = "concerns a store";
  if (fault.empty()) return CatalogueRecord(std::move(record));
  return Status::Corruption(frame.store.value, 0, 0, NameOf(frame) + " " + fault);
}

template <size_t... index>
Result<CatalogueRecord> DecodeKnown(const CatalogueFrame& frame, std::span<const uint8_t> body,
                                    std::index_sequence<index...>) {
  Result<CatalogueRecord> decoded = Status::Corruption(frame.store.value, 0, 0, NameOf(frame) + " has no type");
  ((frame.type == index + 1 ? (decoded = Decode<std::variant_alternative_t<index, CatalogueRecord>>(frame, body), 0)
                            : 0),
   ...);
  return decoded;
}

}  // namespace

const char* SegmentStateName(SegmentState state) {
  switch (state) {
    case SegmentState::kActive:
      return "active";
    case SegmentState::kSealed:
      return "sealed";
    case SegmentState::kPoisoned:
      return "poisoned";
  }
  return "unknown";
}

std::string CatalogueTypeName(uint16_t type) {
  static constexpr const char* kNames[] = {"installation", "data path", "store",           "store gone", "segment",
                                           "segment gone", "damage",    "end of snapshot", "scrub"};
  if (type >= 1 && type <= std::size(kNames)) return kNames[type - 1];
  return "type " + std::to_string(type);
}

uint64_t CatalogueFrame::RecordSizeBytes() const {
  return kCatalogueFrameSizeBytes + RoundUpTo8(body_size_bytes) + sizeof(uint64_t);
}

void AppendCatalogueRecord(const CatalogueRecord& record, const CataloguePlace& place, std::vector<uint8_t>* out) {
  const Encoded encoded = EncodeBody(record);
  ByteWriter writer;
  writer.U32(kCatalogueMagic);
  writer.U32(static_cast<uint32_t>(encoded.body.size()));
  writer.U16(encoded.type);
  writer.U16(static_cast<uint16_t>(encoded.flags | (place.in_snapshot ? kCatalogueSnapshotFlag : 0)));
  writer.U32(place.generation);
  writer.U64(place.sequence);
  writer.U64(place.flush_begin);
  writer.U64(encoded.store.value);
  writer.U64(Checksum64(writer.bytes()));
  writer.Bytes(encoded.body);
  while (writer.size() % sizeof(uint64_t) != 0) writer.U8(0);
  writer.U64(Checksum64(writer.bytes().subspan(kFrameChecksumOffset)));
  out->insert(out->end(), writer.bytes().begin(), writer.bytes().end());
}

Result<CatalogueFrame> DecodeCatalogueFrame(std::span<const uint8_t> bytes) {
  const auto none = [] { return Status::Corruption(0, 0, 0, "no frame of a catalogue record"); };
  if (bytes.size() < kCatalogueFrameSizeBytes) return none();
  ByteReader reader(bytes);
  if (reader.U32() != kCatalogueMagic) return none();
  CatalogueFrame frame;
  frame.body_size_bytes = reader.U32();
  frame.type = reader.U16();
  frame.flags = reader.U16();
  frame.generation = reader.U32();
  frame.sequence = reader.U64();
  frame.flush_begin = reader.U64();
  frame.store = StoreId{reader.U64()};
  if (reader.U64() != Checksum64(bytes.first(kFrameChecksumOffset))) return none();
  if (frame.sequence == 0 || frame.flush_begin == 0 || frame.flush_begin > frame.sequence) return none();
  return frame;
}

bool VerifiesCatalogueBody(const CatalogueFrame& frame, std::span<const uint8_t> bytes) {
  if (bytes.size() < frame.RecordSizeBytes()) return false;
  const auto end = static_cast<size_t>(frame.RecordSizeBytes() - sizeof(uint64_t));
  const size_t body_end = kCatalogueFrameSizeBytes + frame.body_size_bytes;
  return LoadLittleEndian<uint64_t>(bytes, end) ==
             Checksum64(bytes.subspan(kFrameChecksumOffset, end - kFrameChecksumOffset)) &&
         IsZero(bytes.subspan(body_end, end - body_end));
}

Result<CatalogueRecord> DecodeCatalogueBody(const CatalogueFrame& frame, std::span<const uint8_t> bytes) {
  const std::span<const uint8_t> body = bytes.subspan(kCatalogueFrameSizeBytes, frame.body_size_bytes);
  const bool is_optional = (frame.flags & kCatalogueOptionalFlag) != 0;
  if ((frame.flags & ~kKnownFlags) != 0 || (frame.type >= kCatalogueUnknownTypeMin && !is_optional)) {
    return Status::NotSupported(NameOf(frame) + " was written by a newer Quarry, and may not be passed over");
  }
  if (frame.type >= kCatalogueUnknownTypeMin) {
    CatalogueUnknown unknown;
    unknown.type = frame.type;
    unknown.store = frame.store;
    unknown.body.assign(body.begin(), body.end());
    return CatalogueRecord(std::move(unknown));
  }
  if (is_optional) return Status::Corruption(frame.store.value, 0, 0, NameOf(frame) + " is optional");
  return DecodeKnown(frame, body, std::make_index_sequence<kCatalogueUnknownTypeMin - 1>());
}

}  // namespace quarry
