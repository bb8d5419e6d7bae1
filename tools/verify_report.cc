#include "verify_report.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "quarry/printable.h"

namespace quarry::verify {

namespace {

constexpr uint64_t kProgressMicros = 500'000;
constexpr uint64_t kProgressLogMicros = 30'000'000;  ///< into a file: now and then a line
constexpr int kInterruptedStatus = 130;

uint64_t NowMicros() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

std::string Size(uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text.data();
}

std::string Duration(uint64_t seconds) {
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "%llu:%02llu:%02llu", static_cast<unsigned long long>(seconds / 3600),
                      static_cast<unsigned long long>(seconds / 60 % 60),
                      static_cast<unsigned long long>(seconds % 60));
  return text.data();
}

std::string JsonEscape(uint32_t code) {
  std::array<char, 16> text{};
  if (code < 0x10000) {
    (void)std::snprintf(text.data(), text.size(), "\\u%04x", code);
  } else {
    (void)std::snprintf(text.data(), text.size(), "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10U),
                        0xdc00 + (code & 0x3ffU));
  }
  return text.data();
}

int ExitStatus(const VerifyTotals& totals) {
  if (totals.stopped) return kInterruptedStatus;
  if (totals.Count(FindingKind::kDamaged) + totals.Count(FindingKind::kMissing) > 0) return 1;
  const uint64_t others = totals.Count(FindingKind::kUnreadable) + totals.Count(FindingKind::kDoubtful) +
                          totals.Count(FindingKind::kForeign);
  return others > 0 ? 3 : 0;
}

const char* Verdict(int exit_status) {
  switch (exit_status) {
    case 0:
      return "all well";
    case 1:
      return "DAMAGE FOUND: CHECK TABLE names the rows; restore them from a backup or a replica, and check the drive";
    case 3:
      return "nothing is damaged for certain, but see above; CHECK TABLE says whether a row is concerned";
    default:
      return "interrupted: not everything was looked at";
  }
}

}  // namespace

std::string HomeOf(const std::string& directory) {
  const std::filesystem::path path(directory);
  std::error_code error;
  if (std::filesystem::exists(path / kHomeName, error)) return (path / kHomeName).string();
  return directory;
}

std::string JsonString(const std::string& text) {
  std::string json = "\"";
  for (size_t at = 0; at < text.size();) {
    const Character character = CharacterAt(text, at);
    if (character.size == 0) {
      json += "\xef\xbf\xbd";
    } else if (character.code == '"' || character.code == '\\') {
      json += '\\';
      json += text[at];
    } else if (IsHostile(character.code)) {
      json += JsonEscape(character.code);
    } else {
      json += text.substr(at, character.size);
    }
    at += std::max<size_t>(character.size, 1);
  }
  return json + '"';
}

Report::Report(const ReportOptions& options, std::function<bool()> interrupted, std::ostream* out,
               std::ostream* progress)
    : options_(options),
      interrupted_(std::move(interrupted)),
      out_(*out),
      progress_(*progress),
      rate_(options.bytes_per_second),
      started_micros_(NowMicros()),
      shown_micros_(started_micros_) {}

void Report::Found(const Finding& finding) {
  if (finding.kind == FindingKind::kLeftover && !options_.all) return;
  ClearProgress();
  if (options_.json) {
    PrintJson(finding);
  } else {
    PrintLine(finding);
  }
  ++listed_;
}

void Report::PrintLine(const Finding& finding) {
  out_ << FindingKindName(finding.kind) << ": ";
  if (finding.store.value != 0) {
    out_ << "store " << finding.store.value;
    if (!finding.table_name.empty()) out_ << " (table " << Printable(finding.table_name) << ")";
    if (finding.segment.value != 0) out_ << " segment " << finding.segment.value;
    if (finding.size_bytes != 0) out_ << " offset " << finding.offset_bytes << " length " << finding.size_bytes;
    out_ << ": ";
  }
  out_ << Printable(finding.what) << "\n  in " << Printable(finding.path) << "\n";
}

void Report::PrintJson(const Finding& finding) {
  out_ << (listed_ == 0 ? "{\"findings\": [\n" : ",\n") << "  {\"kind\": \"" << FindingKindName(finding.kind)
       << "\", \"path\": " << JsonString(finding.path);
  if (finding.store.value != 0) out_ << ", \"store\": " << finding.store.value;
  if (finding.table.value != 0) out_ << ", \"table_id\": " << finding.table.value;
  if (!finding.table_name.empty()) out_ << ", \"table\": " << JsonString(finding.table_name);
  if (finding.segment.value != 0) out_ << ", \"segment\": " << finding.segment.value;
  if (finding.size_bytes != 0) {
    out_ << ", \"offset\": " << finding.offset_bytes << ", \"length\": " << finding.size_bytes;
  }
  out_ << ", \"what\": " << JsonString(finding.what) << "}";
}

bool Report::Progress(const VerifyProgress& progress) {
  const uint64_t now = NowMicros();
  const uint64_t read = progress.bytes_done - std::min(bytes_before_, progress.bytes_done);
  bytes_before_ = progress.bytes_done;
  ShowProgress(progress);
  // In short naps, so that an interrupt is heeded.
  for (uint64_t wait = rate_.WaitMicros(read, now); wait > 0 && !interrupted_();) {
    const uint64_t nap = std::min<uint64_t>(wait, 100'000);
    std::this_thread::sleep_for(std::chrono::microseconds(nap));
    wait -= nap;
  }
  return !interrupted_();
}

void Report::ShowProgress(const VerifyProgress& progress) {
  const bool is_terminal = ::isatty(STDERR_FILENO) == 1;
  const uint64_t now = NowMicros();
  if (options_.quiet || now - shown_micros_ < (is_terminal ? kProgressMicros : kProgressLogMicros)) return;
  shown_micros_ = now;
  const uint64_t elapsed = now - started_micros_;
  const double rate = static_cast<double>(progress.bytes_done) / static_cast<double>(elapsed) * 1e6;
  const uint64_t left = progress.bytes_total - std::min(progress.bytes_total, progress.bytes_done);
  if (is_terminal) progress_ << "\r";
  progress_ << Size(progress.bytes_done) << " of " << Size(progress.bytes_total) << ", "
            << Size(static_cast<uint64_t>(rate)) << "/s, "
            << (rate > 0 ? Duration(static_cast<uint64_t>(static_cast<double>(left) / rate)) : "?") << " left"
            << (is_terminal ? "    " : "\n") << std::flush;
  line_is_open_ = is_terminal;
}

void Report::ClearProgress() {
  if (line_is_open_) progress_ << "\r" << std::string(72, ' ') << "\r" << std::flush;
  line_is_open_ = false;
}

int Report::Finish(const std::string& home_path, const Result<VerifyTotals>& totals) {
  ClearProgress();
  const int exit_status = totals.ok() ? ExitStatus(*totals) : 2;
  if (options_.json) {
    PrintJsonEnd(totals, exit_status);
  } else if (totals.ok()) {
    PrintSummary(*totals, exit_status);
  }
  if (!totals.ok()) progress_ << "quarry-verify: " << Printable(home_path + ": " + totals.status().ToString()) << "\n";
  out_.flush();
  if (out_) return exit_status;
  progress_ << "quarry-verify: cannot write the output\n";
  return 2;
}

void Report::PrintSummary(const VerifyTotals& totals, int exit_status) {
  out_ << totals.stores << " stores, " << totals.segments << " segments, " << totals.extents << " extents, "
       << totals.parts << " parts, " << Size(totals.bytes) << " read";
  for (size_t kind = 0; kind < kFindingKinds; ++kind) {
    if (totals.findings[kind] == 0) continue;
    out_ << ", " << totals.findings[kind] << " " << FindingKindName(static_cast<FindingKind>(kind));
    if (static_cast<FindingKind>(kind) == FindingKind::kLeftover && !options_.all) out_ << " (--all lists them)";
  }
  out_ << "\n" << Verdict(exit_status) << "\n";
}

void Report::PrintJsonEnd(const Result<VerifyTotals>& totals, int exit_status) {
  out_ << (listed_ == 0 ? "{\"findings\": [" : "\n") << "],\n\"exit_status\": " << exit_status;
  if (!totals.ok()) {
    out_ << ",\n\"error\": " << JsonString(totals.status().ToString()) << "}\n";
    return;
  }
  out_ << ",\n\"stores\": " << totals->stores << ", \"segments\": " << totals->segments
       << ", \"extents\": " << totals->extents << ", \"parts\": " << totals->parts
       << ", \"bytes_read\": " << totals->bytes << ",\n\"counts\": {";
  for (size_t kind = 0; kind < kFindingKinds; ++kind) {
    out_ << (kind == 0 ? "" : ", ") << "\"" << FindingKindName(static_cast<FindingKind>(kind))
         << "\": " << totals->findings[kind];
  }
  out_ << "}}\n";
}

}  // namespace quarry::verify
