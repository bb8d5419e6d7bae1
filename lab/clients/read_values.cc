// Reads values by primary key over one of several paths into the server, and says in one JSON line how fast.
//
// One load: read_values --path PATH [--compress] --database D --table T --value-bytes N --rows N --threads N --warmup S
// --seconds S CONNECTION. With --fill --payload-path FILE --payload-bytes N it fills rows 1..N with slices of FILE, and
// measures nothing. --first SQL is a statement to run before anything else.
//
// PATH: text (SQL text), prepared (binary protocol), handler (HANDLER ... READ), handlersocket (its line protocol),
// connect (a new connection for each SQL text). CONNECTION: --host H --port P --user U, or --socket S --user U, with
// the password (of HandlerSocket, its secret) of the environment's QUARRY_READER_PASSWORD; built with QUARRY_EMBEDDED
// the server is in this process, and everything behind `--` goes to it.
//
// Every value's length is checked: an answer that is not the whole value ends the program with exit code 1, as any
// error does. One thread per connection; nothing is shared while measuring but the clock.
#include <arpa/inet.h>
#include <fcntl.h>
#include <getopt.h>
#include <mysql.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "reader.h"

namespace quarry_lab {
namespace {

constexpr size_t kTransactionBytes = 1 << 20;  // of a fill
constexpr size_t kStatementRowsMax = 64;       // of a fill: a cluster takes a round trip for each statement

MYSQL* Connect(const Options& options) {
  MYSQL* connection = mysql_init(nullptr);
  if (connection == nullptr) Fail("mysql_init", "out of memory");
#ifdef QUARRY_EMBEDDED
  mysql_options(connection, MYSQL_OPT_USE_EMBEDDED_CONNECTION, nullptr);
#endif
  if (options.compress) mysql_options(connection, MYSQL_OPT_COMPRESS, nullptr);
  const bool by_socket = !options.socket.empty();
  if (mysql_real_connect(connection, by_socket || options.port == 0 ? nullptr : options.host.c_str(),
                         options.user.c_str(), std::getenv("QUARRY_READER_PASSWORD"), options.database.c_str(),
                         options.port, by_socket ? options.socket.c_str() : nullptr, 0) == nullptr) {
    Fail("mysql_real_connect", mysql_error(connection));
  }
  return connection;
}

void Query(MYSQL* connection, const std::string& text) {
  if (mysql_real_query(connection, text.data(), text.size()) != 0) Fail(text, mysql_error(connection));
}

/// Runs a statement that gives one row of one column, and checks that it is a whole value.
void QueryValue(MYSQL* connection, const std::string& text, const Options& options) {
  Query(connection, text);
  MYSQL_RES* result = mysql_store_result(connection);
  if (result == nullptr) Fail(text, mysql_error(connection));
  if (mysql_fetch_row(result) == nullptr) Fail(text, "no row");
  CheckLength(options, mysql_fetch_lengths(result)[0]);
  mysql_free_result(result);
}

class TextPath : public Path {
 public:
  explicit TextPath(const Options& options)
      : options_(options), connection_(Connect(options)), text_("SELECT data FROM " + options.table + " WHERE id = ") {}
  ~TextPath() override { mysql_close(connection_); }
  void Read(int64_t id) override { QueryValue(connection_, text_ + std::to_string(id), options_); }

 private:
  const Options& options_;
  MYSQL* connection_;
  const std::string text_;
};

class ConnectPath : public Path {
 public:
  explicit ConnectPath(const Options& options) : options_(options) {}
  void Read(int64_t id) override { TextPath(options_).Read(id); }

 private:
  const Options& options_;
};

class HandlerPath : public Path {
 public:
  explicit HandlerPath(const Options& options)
      : options_(options), connection_(Connect(options)), text_("HANDLER values_of READ `PRIMARY` = (") {
    Query(connection_, "HANDLER " + options.table + " OPEN AS values_of");
  }
  ~HandlerPath() override { mysql_close(connection_); }

  /// HANDLER gives whole rows: the id, then the value.
  void Read(int64_t id) override {
    const std::string text = text_ + std::to_string(id) + ")";
    Query(connection_, text);
    MYSQL_RES* result = mysql_store_result(connection_);
    if (result == nullptr) Fail(text, mysql_error(connection_));
    if (mysql_fetch_row(result) == nullptr) Fail(text, "no row");
    CheckLength(options_, mysql_fetch_lengths(result)[1]);
    mysql_free_result(result);
  }

 private:
  const Options& options_;
  MYSQL* connection_;
  const std::string text_;
};

class PreparedPath : public Path {
 public:
  explicit PreparedPath(const Options& options)
      : options_(options), connection_(Connect(options)), value_(options.value_bytes) {
    const std::string text = "SELECT data FROM " + options.table + " WHERE id = ?";
    statement_ = mysql_stmt_init(connection_);
    Check(mysql_stmt_prepare(statement_, text.data(), text.size()), text.c_str());
    MYSQL_BIND key{};
    key.buffer_type = MYSQL_TYPE_LONGLONG;
    key.buffer = &id_;
    Check(mysql_stmt_bind_param(statement_, &key), "mysql_stmt_bind_param");
    MYSQL_BIND column{};
    column.buffer_type = MYSQL_TYPE_LONG_BLOB;
    column.buffer = value_.data();
    column.buffer_length = value_.size();
    column.length = &length_;
    Check(mysql_stmt_bind_result(statement_, &column), "mysql_stmt_bind_result");
  }
  ~PreparedPath() override {
    mysql_stmt_close(statement_);
    mysql_close(connection_);
  }

  void Read(int64_t id) override {
    id_ = id;
    Check(mysql_stmt_execute(statement_), "mysql_stmt_execute");
    if (mysql_stmt_fetch(statement_) != 0) Fail("SELECT", "no row, or a longer value than expected");
    CheckLength(options_, length_);
    Check(mysql_stmt_free_result(statement_), "mysql_stmt_free_result");
  }

 private:
  void Check(int failed, const char* what) {
    if (failed != 0) Fail(what, mysql_stmt_error(statement_));
  }

  const Options& options_;
  MYSQL* connection_;
  MYSQL_STMT* statement_ = nullptr;
  long long id_ = 0;  // NOLINT(google-runtime-int): what MYSQL_TYPE_LONGLONG binds
  std::vector<char> value_;
  unsigned long length_ = 0;  // NOLINT(google-runtime-int): MYSQL_BIND's own type
};

/// Lines of tokens between tabs; bytes below 0x10 come as 0x01 and the byte plus 0x40.
class HandlerSocketPath : public Path {
 public:
  explicit HandlerSocketPath(const Options& options) : options_(options), answer_(4 * options.value_bytes + 4096) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(options.port));
    inet_pton(AF_INET, options.host.c_str(), &address.sin_addr);
    if (socket_ < 0 || ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      Fail("HandlerSocket's port " + std::to_string(options.port), std::strerror(errno));
    }
    if (const char* secret = std::getenv("QUARRY_READER_PASSWORD"); secret != nullptr) {
      Request(std::string("A\t1\t") + secret + "\n");
    }
    Request("P\t1\t" + options.database + "\t" + options.table + "\tPRIMARY\tdata\n");
  }
  ~HandlerSocketPath() override { ::close(socket_); }

  void Read(int64_t id) override {
    const size_t size = Request("1\t=\t1\t" + std::to_string(id) + "\t1\t0\n");
    const char* begin = answer_.data();
    const char* value = SkipToken(SkipToken(begin, begin + size), begin + size);
    CheckLength(options_, Decode(value, begin + size - 1));
  }

 private:
  /// Sends a line and receives one; its length with the newline.
  size_t Request(const std::string& line) {
    if (::send(socket_, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
      Fail("send", std::strerror(errno));
    size_t size = 0;
    while (size == 0 || answer_[size - 1] != '\n') {
      if (size == answer_.size()) Fail("HandlerSocket", "an answer longer than any value");
      const ssize_t got = ::recv(socket_, answer_.data() + size, answer_.size() - size, 0);
      if (got <= 0) Fail("recv", got == 0 ? "the server closed the connection" : std::strerror(errno));
      size += static_cast<size_t>(got);
    }
    if (answer_[0] != '0') Fail("HandlerSocket", std::string(answer_.data(), std::min<size_t>(size, 200)));
    return size;
  }

  static const char* SkipToken(const char* from, const char* end) {
    const void* tab = std::memchr(from, '\t', static_cast<size_t>(end - from));
    if (tab == nullptr) Fail("HandlerSocket", "no row");
    return static_cast<const char*>(tab) + 1;
  }

  /// In place, as any client must; the number of bytes.
  static size_t Decode(const char* from, const char* end) {
    char* to = const_cast<char*>(from);
    const char* const begin = to;
    while (from < end) {
      const void* found = std::memchr(from, 1, static_cast<size_t>(end - from));
      const char* escape = found == nullptr ? end : static_cast<const char*>(found);
      std::memmove(to, from, static_cast<size_t>(escape - from));
      to += escape - from;
      if (escape == end) break;
      *to++ = static_cast<char>(escape[1] - 0x40);
      from = escape + 2;
    }
    return static_cast<size_t>(to - begin);
  }

  const Options& options_;
  int socket_;
  std::vector<char> answer_;
};

std::unique_ptr<Path> MakePath(const Options& options) {
  if (options.path == "text") return std::make_unique<TextPath>(options);
  if (options.path == "prepared") return std::make_unique<PreparedPath>(options);
  if (options.path == "handler") return std::make_unique<HandlerPath>(options);
  if (options.path == "handlersocket") return std::make_unique<HandlerSocketPath>(options);
  if (options.path == "connect") return std::make_unique<ConnectPath>(options);
  Fail("--path " + options.path, "not one of text, prepared, handler, handlersocket, connect");
}

void RunFirst(const Options& options) {
  MYSQL* connection = Connect(options);
  Query(connection, options.first);
  mysql_free_result(mysql_store_result(connection));
  mysql_close(connection);
}

/// An INSERT of `rows` rows of a key and a value, ready to be bound.
MYSQL_STMT* PrepareInsert(MYSQL* connection, const Options& options, int64_t rows) {
  std::string text = "INSERT INTO " + options.table + " VALUES (?, ?)";
  for (int64_t i = 1; i < rows; ++i) text += ", (?, ?)";
  MYSQL_STMT* statement = mysql_stmt_init(connection);
  if (mysql_stmt_prepare(statement, text.data(), text.size()) != 0) Fail(text, mysql_stmt_error(statement));
  return statement;
}

/// What MySQL Cluster calls temporary, and a lock wait's end: a client is expected to repeat the transaction.
bool IsTemporary(unsigned error) {
  constexpr unsigned kLockWaitTimeout = 1205, kTemporary = 1297;
  return error == kLockWaitTimeout || error == kTemporary;
}

/// Inserts rows, each with a slice of the payload at a random byte offset.
class Filler {
 public:
  Filler(MYSQL* connection, const Options& options, char* payload)
      : connection_(connection), options_(options), payload_(payload), random_(options.value_bytes) {
    const size_t rows = kTransactionBytes / options.value_bytes;
    statement_rows_ = static_cast<int64_t>(std::clamp<size_t>(rows, 1, kStatementRowsMax));
    transaction_rows_ = std::max<int64_t>(1, static_cast<int64_t>(rows) / statement_rows_) * statement_rows_;
  }
  Filler(const Filler&) = delete;
  Filler& operator=(const Filler&) = delete;
  ~Filler() {
    if (statement_ != nullptr) mysql_stmt_close(statement_);
  }

  int64_t transaction_rows() const { return transaction_rows_; }

  /// Rows first..last in one transaction, which is repeated upon temporary errors.
  void Transaction(int64_t first, int64_t last) {
    for (int attempts = 1; !TryTransaction(first, last, attempts < kAttemptsMax); ++attempts) {
      Query(connection_, "ROLLBACK");
      std::this_thread::sleep_for(kPause);
    }
  }

 private:
  /// False upon a temporary error that `may_fail`; any other error ends the program.
  bool TryTransaction(int64_t first, int64_t last, bool may_fail) {
    Query(connection_, "BEGIN");
    for (int64_t row = first; row <= last; row += statement_rows_) {
      if (Insert(row, std::min(statement_rows_, last - row + 1))) continue;
      if (may_fail && IsTemporary(mysql_stmt_errno(statement_))) return false;
      Fail("INSERT INTO " + options_.table, mysql_stmt_error(statement_));
    }
    if (mysql_query(connection_, "COMMIT") == 0) return true;
    if (may_fail && IsTemporary(mysql_errno(connection_))) return false;
    Fail("COMMIT", mysql_error(connection_));
  }

  /// One statement; false upon an error, which the statement knows.
  bool Insert(int64_t first, int64_t count) {
    Prepare(count);
    std::vector<long long> keys(
        static_cast<size_t>(count));  // NOLINT(google-runtime-int): what MYSQL_TYPE_LONGLONG binds
    std::vector<MYSQL_BIND> bind(2 * keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      keys[i] = first + static_cast<int64_t>(i);
      bind[2 * i].buffer_type = MYSQL_TYPE_LONGLONG;
      bind[2 * i].buffer = &keys[i];
      bind[2 * i + 1].buffer_type = MYSQL_TYPE_LONG_BLOB;
      bind[2 * i + 1].buffer = payload_ + random_() % (options_.payload_bytes - options_.value_bytes);
      bind[2 * i + 1].buffer_length = options_.value_bytes;
    }
    return mysql_stmt_bind_param(statement_, bind.data()) == 0 && mysql_stmt_execute(statement_) == 0;
  }

  /// Anew only for another number of rows, as of the last statement.
  void Prepare(int64_t count) {
    if (count == prepared_rows_) return;
    if (statement_ != nullptr) mysql_stmt_close(statement_);
    statement_ = PrepareInsert(connection_, options_, count);
    prepared_rows_ = count;
  }

  static constexpr int kAttemptsMax = 600;  // a minute: a redo log that was full has room again by then
  static constexpr std::chrono::milliseconds kPause{100};

  MYSQL* const connection_;
  const Options& options_;
  char* const payload_;
  std::mt19937_64 random_;
  int64_t statement_rows_ = 1, transaction_rows_ = 1, prepared_rows_ = 0;
  MYSQL_STMT* statement_ = nullptr;
};

/// Rows 1..rows.
void Fill(const Options& options) {
  const int file = ::open(options.payload_path.c_str(), O_RDONLY | O_CLOEXEC);
  void* bytes = file < 0 ? MAP_FAILED : ::mmap(nullptr, options.payload_bytes, PROT_READ, MAP_SHARED, file, 0);
  if (bytes == MAP_FAILED || options.payload_bytes <= options.value_bytes)
    Fail("--payload-path " + options.payload_path, "cannot be used");
  MYSQL* connection = Connect(options);
  {
    Filler filler(connection, options, static_cast<char*>(bytes));
    for (int64_t first = 1; first <= options.rows; first += filler.transaction_rows())
      filler.Transaction(first, std::min(options.rows, first + filler.transaction_rows() - 1));
  }
  mysql_close(connection);
  ::munmap(bytes, options.payload_bytes);
  ::close(file);
}

#ifdef QUARRY_EMBEDDED
/// The server starts here; its data directory has no mysql schema, only what --fill makes.
void StartServer(int argc, char** argv, const Options& options) {
  static char program[] = "read_values", group[] = "read_values";
  static char* groups[] = {group, nullptr};
  std::vector<char*> server{program};
  for (int i = optind; i < argc; ++i) server.push_back(argv[i]);
  if (mysql_library_init(static_cast<int>(server.size()), server.data(), groups) != 0)
    Fail("mysql_library_init", "the embedded server did not start");
  Options plain = options;
  plain.database = "information_schema";
  MYSQL* connection = Connect(plain);
  Query(connection, "CREATE DATABASE IF NOT EXISTS " + options.database);
  mysql_close(connection);
}
#endif

}  // namespace
}  // namespace quarry_lab

int main(int argc, char** argv) {
  const quarry_lab::Options options = quarry_lab::ParseOptions(argc, argv);
#ifdef QUARRY_EMBEDDED
  quarry_lab::StartServer(argc, argv, options);
#else
  if (mysql_library_init(0, nullptr, nullptr) != 0) quarry_lab::Fail("mysql_library_init", "failed");
#endif
  if (!options.first.empty()) quarry_lab::RunFirst(options);
  if (options.fill) {
    quarry_lab::Fill(options);
  } else {
    quarry_lab::Measure(options, {quarry_lab::MakePath, [] { mysql_thread_init(); }, mysql_thread_end});
  }
  mysql_library_end();
  return 0;
}
