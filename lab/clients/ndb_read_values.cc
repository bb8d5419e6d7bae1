// Reads values by primary key through the NDB API: a client of the data nodes, with no SQL node between. One JSON line
// says how fast.
//
// ndb_read_values --host H --port P --database D --table T --value-bytes N --rows N --threads N --warmup S --seconds S,
// where H and P are those of the cluster's management node. The table is (id INT PRIMARY KEY, data <a BLOB type>).
//
// Each read is a transaction of its own that reads what is committed. All threads share one connection to the cluster,
// as the threads of a SQL node do.
#include <NdbApi.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "reader.h"

namespace quarry_lab {
namespace {

constexpr int kRetries = 4, kRetrySeconds = 1, kReadySeconds = 30;

std::unique_ptr<Ndb_cluster_connection> cluster;

class NdbApiPath : public Path {
 public:
  explicit NdbApiPath(const Options& options)
      : options_(options), ndb_(cluster.get(), options.database.c_str()), value_(options.value_bytes) {
    Check(ndb_.init() == 0, "Ndb::init", ndb_.getNdbError());
    table_ = ndb_.getDictionary()->getTable(options.table.c_str());
    Check(table_ != nullptr, options.database + "." + options.table, ndb_.getDictionary()->getNdbError());
  }

  void Read(int64_t id) override {
    NdbTransaction* const transaction = ndb_.startTransaction();
    Check(transaction != nullptr, "startTransaction", ndb_.getNdbError());
    NdbOperation* const operation = transaction->getNdbOperation(table_);
    Check(operation != nullptr, "getNdbOperation", transaction->getNdbError());
    Check(operation->readTuple(NdbOperation::LM_CommittedRead) == 0, "readTuple", operation->getNdbError());
    Check(operation->equal("id", static_cast<Int32>(id)) == 0, "equal", operation->getNdbError());
    NdbBlob* const blob = operation->getBlobHandle("data");
    Check(blob != nullptr, "getBlobHandle", operation->getNdbError());
    Check(blob->getValue(value_.data(), static_cast<Uint32>(value_.size())) == 0, "getValue", blob->getNdbError());
    // The parts are fetched in here, too; the handle is good until the transaction ends.
    Check(transaction->execute(NdbTransaction::NoCommit) == 0, "execute", transaction->getNdbError());
    Uint64 length = 0;
    Check(blob->getLength(length) == 0, "getLength", blob->getNdbError());
    CheckLength(options_, length);
    Check(transaction->execute(NdbTransaction::Commit) == 0, "commit", transaction->getNdbError());
    ndb_.closeTransaction(transaction);
  }

 private:
  static void Check(bool holds, const std::string& what, const NdbError& error) {
    if (!holds) Fail(what, std::to_string(error.code) + ", " + (error.message == nullptr ? "" : error.message));
  }

  const Options& options_;
  Ndb ndb_;
  const NdbDictionary::Table* table_ = nullptr;
  std::vector<char> value_;
};

std::unique_ptr<Path> MakePath(const Options& options) { return std::make_unique<NdbApiPath>(options); }

void Connect(const Options& options) {
  const std::string where = options.host + ":" + std::to_string(options.port);
  cluster = std::make_unique<Ndb_cluster_connection>(where.c_str());
  if (cluster->connect(kRetries, kRetrySeconds, 0) != 0)
    Fail("management node at " + where, cluster->get_latest_error_msg());
  if (cluster->wait_until_ready(kReadySeconds, 0) != 0) Fail("data nodes of " + where, "not ready");
}

}  // namespace
}  // namespace quarry_lab

int main(int argc, char** argv) {
  const quarry_lab::Options options = quarry_lab::ParseOptions(argc, argv);
  ndb_init();
  quarry_lab::Connect(options);
  quarry_lab::Measure(options, {quarry_lab::MakePath, [] {}, [] {}});
  quarry_lab::cluster.reset();
  ndb_end(0);
  return 0;
}
