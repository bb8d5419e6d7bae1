/*
  Stores values by mysql_stmt_send_long_data and fetches them by mysql_stmt_fetch_column, both in pieces.

  usage: long_data SOCKET TABLE INPUT_DIRECTORY OUTPUT_DIRECTORY PIECE_BYTES

  Standard input: a line "id size" for each value, size -1 for NULL. The value is INPUT_DIRECTORY/<id>.bin; what comes
  back is written to OUTPUT_DIRECTORY/<id>.bin, pieces from the last to the first, and no file for NULL. Exit code 1
  with a message at the first error.
*/
#include <fcntl.h>
#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fail(const char *what, const char *why) {
  fprintf(stderr, "long_data: %s: %s\n", what, why);
  exit(1);
}

static void check(MYSQL_STMT *statement, int failed, const char *what) {
  if (failed) fail(what, mysql_stmt_error(statement));
}

static MYSQL_STMT *prepare(MYSQL *connection, const char *text) {
  MYSQL_STMT *statement = mysql_stmt_init(connection);
  if (statement == NULL) fail("mysql_stmt_init", mysql_error(connection));
  check(statement, mysql_stmt_prepare(statement, text, strlen(text)), text);
  return statement;
}

/* One parameter, or result column, of type INT. */
static void bind_id(MYSQL_BIND *bind, int *id) {
  memset(bind, 0, sizeof *bind);
  bind->buffer_type = MYSQL_TYPE_LONG;
  bind->buffer = id;
}

static void store(MYSQL_STMT *insert, int id, long long size, const char *directory, char *piece, size_t piece_bytes) {
  MYSQL_BIND bind[2];
  my_bool is_null = size < 0;
  char path[4096];
  bind_id(&bind[0], &id);
  memset(&bind[1], 0, sizeof bind[1]);
  bind[1].buffer_type = MYSQL_TYPE_LONG_BLOB;
  bind[1].is_null = &is_null;
  check(insert, mysql_stmt_bind_param(insert, bind), "mysql_stmt_bind_param");
  if (!is_null) {
    FILE *file;
    size_t got;
    long long sent = 0;
    snprintf(path, sizeof path, "%s/%d.bin", directory, id);
    file = fopen(path, "rb");
    if (file == NULL) fail(path, "cannot be opened");
    /* At least one call, so that the server knows of long data of no bytes. */
    do {
      got = fread(piece, 1, piece_bytes, file);
      check(insert, mysql_stmt_send_long_data(insert, 1, piece, got), "mysql_stmt_send_long_data");
      sent += (long long)got;
    } while (got == piece_bytes);
    fclose(file);
    if (sent != size) fail(path, "is not as long as announced");
  }
  check(insert, mysql_stmt_execute(insert), "INSERT");
  if (mysql_stmt_affected_rows(insert) != 1) fail("INSERT", "not one row");
}

static void fetch(MYSQL_STMT *select, int id, const char *directory, char *piece, size_t piece_bytes) {
  MYSQL_BIND key, column;
  unsigned long length = 0;
  my_bool is_null = 0, is_cut = 0;
  int code;
  bind_id(&key, &id);
  check(select, mysql_stmt_bind_param(select, &key), "mysql_stmt_bind_param");
  check(select, mysql_stmt_execute(select), "SELECT");
  /* No buffer: the fetch only tells the length, and that something was cut off. */
  memset(&column, 0, sizeof column);
  column.buffer_type = MYSQL_TYPE_LONG_BLOB;
  column.length = &length;
  column.is_null = &is_null;
  column.error = &is_cut;
  check(select, mysql_stmt_bind_result(select, &column), "mysql_stmt_bind_result");
  code = mysql_stmt_fetch(select);
  if (code == MYSQL_NO_DATA) fail("SELECT", "no row");
  if (code != 0 && code != MYSQL_DATA_TRUNCATED) check(select, 1, "mysql_stmt_fetch");
  if (!is_null) {
    char path[4096];
    int file;
    unsigned long total = length;
    unsigned long pieces = total == 0 ? 0 : (total - 1) / piece_bytes + 1;
    snprintf(path, sizeof path, "%s/%d.bin", directory, id);
    file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (file < 0) fail(path, "cannot be made");
    while (pieces-- > 0) {
      const unsigned long offset = pieces * piece_bytes;
      const unsigned long wanted = total - offset < piece_bytes ? total - offset : piece_bytes;
      column.buffer = piece;
      column.buffer_length = wanted;
      check(select, mysql_stmt_fetch_column(select, &column, 0, offset), "mysql_stmt_fetch_column");
      if (length != total) fail(path, "its length changed between pieces");
      if (pwrite(file, piece, wanted, (off_t)offset) != (ssize_t)wanted) fail(path, "cannot be written");
    }
    if (close(file) != 0) fail(path, "cannot be closed");
  }
  if (mysql_stmt_fetch(select) != MYSQL_NO_DATA) fail("SELECT", "more than one row");
  check(select, mysql_stmt_free_result(select), "mysql_stmt_free_result");
}

int main(int argc, char **argv) {
  MYSQL *connection = mysql_init(NULL);
  const unsigned long packet_bytes_max = 1UL << 30;
  MYSQL_STMT *insert, *select;
  char text[512], *piece;
  int ids[1000], count = 0, i;
  long long sizes[1000];
  size_t piece_bytes;

  if (argc != 6) fail("usage", "long_data SOCKET TABLE INPUT_DIRECTORY OUTPUT_DIRECTORY PIECE_BYTES");
  piece_bytes = strtoul(argv[5], NULL, 10);
  piece = malloc(piece_bytes);
  if (piece_bytes == 0 || piece == NULL) fail("PIECE_BYTES", argv[5]);
  while (count < 1000 && scanf("%d %lld", &ids[count], &sizes[count]) == 2) ++count;
  if (count == 0) fail("standard input", "no values");

  mysql_optionsv(connection, MYSQL_OPT_MAX_ALLOWED_PACKET, &packet_bytes_max);
  if (mysql_real_connect(connection, NULL, NULL, NULL, NULL, 0, argv[1], 0) == NULL) {
    fail("mysql_real_connect", mysql_error(connection));
  }
  snprintf(text, sizeof text, "INSERT INTO %s VALUES (?, ?)", argv[2]);
  insert = prepare(connection, text);
  snprintf(text, sizeof text, "SELECT b FROM %s WHERE id = ?", argv[2]);
  select = prepare(connection, text);
  for (i = 0; i < count; ++i) store(insert, ids[i], sizes[i], argv[3], piece, piece_bytes);
  for (i = count - 1; i >= 0; --i) fetch(select, ids[i], argv[4], piece, piece_bytes);
  mysql_stmt_close(insert);
  mysql_stmt_close(select);
  mysql_close(connection);
  free(piece);
  printf("%d values\n", count);
  return 0;
}
