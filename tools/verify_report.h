// What quarry-verify prints: findings and a summary on standard output, as lines or as one JSON object; progress on
// standard error. Thread-safety: externally synchronised.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

#include "quarry/gc.h"
#include "quarry/status.h"
#include "quarry/verify.h"

namespace quarry::verify {

struct ReportOptions {
  bool json = false;
  bool all = false;    ///< leftovers too
  bool quiet = false;  ///< no progress
  uint64_t bytes_per_second = 0;
};

/// `directory` itself when it is a home, else the home in it.
[[nodiscard]] std::string HomeOf(const std::string& directory);

/// `text` as a JSON string, with its quotes. Bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string JsonString(const std::string& text);

class Report : public VerifyObserver {
 public:
  /// `interrupted` is asked after each read.
  Report(const ReportOptions& options, std::function<bool()> interrupted, std::ostream* out, std::ostream* progress);

  void Found(const Finding& finding) override;
  /// Waits as the rate demands.
  [[nodiscard]] bool Progress(const VerifyProgress& progress) override;

  /// Prints the rest. The exit status of the program.
  [[nodiscard]] int Finish(const std::string& home_path, const Result<VerifyTotals>& totals);

 private:
  void PrintLine(const Finding& finding);
  void PrintJson(const Finding& finding);
  void PrintSummary(const VerifyTotals& totals, int exit_status);
  void PrintJsonEnd(const Result<VerifyTotals>& totals, int exit_status);
  void ShowProgress(const VerifyProgress& progress);
  void ClearProgress();

  const ReportOptions options_;
  const std::function<bool()> interrupted_;
  std::ostream& out_;
  std::ostream& progress_;
  GcRate rate_;
  const uint64_t started_micros_;
  uint64_t bytes_before_ = 0;  ///< at the last call of Progress
  uint64_t shown_micros_ = 0;
  uint64_t listed_ = 0;
  bool line_is_open_ = false;
};

}  // namespace quarry::verify
