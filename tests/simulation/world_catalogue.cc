// Damage of the catalogue in World: the last thing that a run does, for bindings are not compared after it.
#include <algorithm>

#include "context/catalogue_file.h"
#include "io/path.h"
#include "simulation/world.h"

namespace quarry::simulation {

std::optional<StoreId> World::DropAndRestore() {
  for (const StoreStats& stats : directory_->ListStores()) {
    const auto model = stores_.find(stats.store.value);
    if (stats.discarded || stats.rebinding || stats.table == TableId{}) continue;
    if (model == stores_.end() || model->second.may_vanish || !model->second.others.empty()) continue;
    if (!directory_->Discard(stats.table, 1).ok()) return std::nullopt;
    if (!directory_->OpenForAppend(stats.table, stats.table_name).ok()) return std::nullopt;
    return stats.store;
  }
  return std::nullopt;
}

uint64_t World::DrawDamagedByte(std::span<const uint8_t> catalogue, std::optional<StoreId> restored) {
  uint64_t offset = dice_.Below(catalogue.size());
  while (catalogue[offset] == 0) offset = (offset + 1) % catalogue.size();  // most of it only fills blocks
  for (uint64_t at = 0; restored && at + kCatalogueFrameSizeBytes <= catalogue.size(); at += 8) {
    const Result<CatalogueFrame> frame = DecodeCatalogueFrame(catalogue.subspan(at));
    if (!frame.ok() || frame->store != *restored || CatalogueTypeName(frame->type) != "store") continue;
    offset = at + kCatalogueFrameSizeBytes + dice_.Below(frame->body_size_bytes);
  }
  return offset;
}

void World::DamageCatalogue() {
  disk_.memory()->SetCapacityBytes(UINT64_MAX);
  disk_.CutPowerAfter(UINT64_MAX / 2);
  // Half of the time it is the record of a table's return that is lost, behind that of its drop.
  const std::optional<StoreId> restored = dice_.Percent(50) ? DropAndRestore() : std::nullopt;
  CloseForGood();
  const Result<CatalogueOnDisk> before = ReadCatalogue(disk_.memory(), options_.home_path);
  Check(before.ok() && before->losses.empty(), kOpensAgain, "the catalogue of a clean shutdown does not verify");
  const std::string path = JoinPath(options_.home_path, CatalogueFileName(before->generation));
  const std::vector<uint8_t> bytes = disk_.memory()->ReadSmallFile(path, UINT64_MAX).value();
  const uint64_t offset = DrawDamagedByte(bytes, restored);
  if (!disk_.memory()->FlipBit(path, offset, static_cast<int>(dice_.Below(8)))) return;
  ++totals_->catalogues_damaged;
  const Result<CatalogueOnDisk> after = ReadCatalogue(disk_.memory(), options_.home_path);
  Result<std::unique_ptr<StoreDirectoryImpl>> opened = StoreDirectoryImpl::Open(options_, {&disk_, false});
  CheckDisk();
  Check(opened.ok(), kOpensAgain, "a flipped bit of the catalogue: " + opened.status().ToString());
  directory_ = std::move(opened).value();
  Check(!after->losses.empty(), kDamageTakesNothing,
        "nobody saw a flipped bit at " + path + " offset " + std::to_string(offset));
  Check(stores_.empty() || !directory_->TakeNotices().empty(), kDamageTakesNothing,
        "nothing is said of a flipped bit at " + path + " offset " + std::to_string(offset));
  // What the trash's records say may be from before the table came back.
  (void)directory_->EmptyTrash(UINT64_MAX);
  for (const Value& value : values_) {
    const auto store = stores_.find(value.locator.store.value);
    const bool may_go = store == stores_.end() || store->second.may_vanish || store->second.now.is_discarded ||
                        std::any_of(store->second.others.begin(), store->second.others.end(),
                                    [](const Shape& shape) { return shape.is_discarded; });
    if (value.state != Value::State::kLive || value.is_damaged || value.may_be_gone || may_go) continue;
    std::vector<uint8_t> out(value.bytes.size());
    const Status status = directory_->Read(value.head(), {}, out);
    Check(status.ok() && out == value.bytes, kDamageTakesNothing,
          "store " + std::to_string(value.locator.store.value) + " segment " +
              std::to_string(value.locator.segment.value) + ": " + status.ToString());
  }
}

}  // namespace quarry::simulation
