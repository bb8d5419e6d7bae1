#include "format/catalogue_state.h"

#include <algorithm>

namespace quarry {
namespace {

class Applier {
 public:
  explicit Applier(CatalogueState* state) : state_(state) {}

  void operator()(const CatalogueInstallation& record) { Take(record); }
  void operator()(const CatalogueEnd& record) { Take(record.installation); }
  void operator()(const DataPath& record) {
    state_->paths[record.number] = record.path;
    Raise(&state_->installation.next_path_number, record.number + 1);
  }
  void operator()(const CatalogueStore& record) {
    CatalogueState::Store& store = StoreOf(record.store);
    const uint32_t next = NextSegmentOf(store);
    store.record = record;
    Raise(&store.record->next_segment.value, next);
  }
  void operator()(const CatalogueStoreGone& record) {
    Raise(&state_->installation.next_store.value, record.store.value + 1);
    state_->stores.erase(record.store);
    std::erase_if(state_->kept, [&record](const CatalogueUnknown& kept) { return kept.store == record.store; });
  }
  void operator()(const CatalogueSegment& record) {
    CatalogueState::Store& store = StoreOf(record.store);
    store.segments[record.segment.value] = record;
    if (store.record) Raise(&store.record->next_segment.value, record.segment.value + 1);
  }
  void operator()(const CatalogueSegmentGone& record) {
    const auto found = state_->stores.find(record.store);
    if (found == state_->stores.end()) return;
    if (found->second.record) Raise(&found->second.record->next_segment.value, record.segment.value + 1);
    found->second.segments.erase(record.segment.value);
  }
  void operator()(const CatalogueDamage& record) {
    if (std::find(state_->damage.begin(), state_->damage.end(), record) == state_->damage.end()) {
      state_->damage.push_back(record);
    }
  }
  void operator()(const CatalogueScrubPlace& record) { state_->scrub = record; }
  void operator()(const CatalogueUnknown& record) {
    if (std::find(state_->kept.begin(), state_->kept.end(), record) == state_->kept.end()) {
      state_->kept.push_back(record);
    }
  }

 private:
  template <typename Number>
  static void Raise(Number* number, Number least) {
    *number = std::max(*number, least);
  }

  static uint32_t NextSegmentOf(const CatalogueState::Store& store) {
    const uint32_t behind_last = store.segments.empty() ? 1 : store.segments.rbegin()->first + 1;
    return std::max(behind_last, store.record ? store.record->next_segment.value : 1);
  }

  void Take(const CatalogueInstallation& record) {
    const StoreId next_store = std::max(state_->installation.next_store, record.next_store);
    const uint32_t next_path = std::max(state_->installation.next_path_number, record.next_path_number);
    state_->installation = record;
    state_->installation.next_store = next_store;
    state_->installation.next_path_number = next_path;
  }

  CatalogueState::Store& StoreOf(StoreId store) {
    Raise(&state_->installation.next_store.value, store.value + 1);
    return state_->stores[store];
  }

  CatalogueState* const state_;
};

void AddRecordsOf(const CatalogueState::Store& store, std::vector<CatalogueRecord>* records) {
  if (store.record) records->emplace_back(*store.record);
  for (const auto& [number, segment] : store.segments) records->emplace_back(segment);
}

}  // namespace

void CatalogueState::Apply(const CatalogueRecord& record) { std::visit(Applier(this), record); }

std::vector<CatalogueRecord> CatalogueState::CommonRecords() const {
  std::vector<CatalogueRecord> records = {installation};
  for (const auto& [number, path] : paths) records.emplace_back(DataPath{number, path});
  for (const CatalogueDamage& one : damage) records.emplace_back(one);
  if (scrub != CatalogueScrubPlace{}) records.emplace_back(scrub);
  for (const CatalogueUnknown& one : kept) records.emplace_back(one);
  return records;
}

std::vector<CatalogueRecord> CatalogueState::SomeRecords(StoreId* store, size_t count_min) const {
  std::vector<CatalogueRecord> records;
  auto at = stores.lower_bound(*store);
  for (; at != stores.end() && records.size() < count_min; ++at) AddRecordsOf(at->second, &records);
  *store = at == stores.end() ? StoreId{0} : at->first;
  return records;
}

std::vector<CatalogueRecord> CatalogueState::Records() const {
  std::vector<CatalogueRecord> records = CommonRecords();
  for (const auto& [id, store] : stores) AddRecordsOf(store, &records);
  return records;
}

bool CatalogueState::MayGiveBack(StoreId store) const {
  return std::none_of(damage.begin(), damage.end(),
                      [store](const CatalogueDamage& one) { return one.store.value == 0 || one.store == store; });
}

}  // namespace quarry
