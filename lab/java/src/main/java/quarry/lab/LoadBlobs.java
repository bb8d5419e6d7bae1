package quarry.lab;

import java.io.IOException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.Arrays;
import java.util.List;

/**
 * Fills the tables of E3: the same values into each target, compressed as the target says.
 *
 * <pre>LoadBlobs KIND BYTES ROWS SEED PAYLOADS TARGET...</pre>
 *
 * PAYLOADS is the table that keeps what each value must be after it was fetched: (id, sha256). A target is TABLE;CODEC;EXPRESSION, where the
 * expression is what is inserted, e.g. ? or COMPRESS(?). Prints one JSON line for each target.
 */
public final class LoadBlobs {
  private record Target(String table, Codec codec, String expression) {
    static Target parse(String text) {
      String[] fields = text.split(";");
      if (fields.length != 3) {
        throw new IllegalArgumentException("'" + text + "' is not TABLE;CODEC;EXPRESSION");
      }
      return new Target(fields[0], Codec.of(fields[1]), fields[2]);
    }
  }

  private record Values(String kind, int bytes, int rows, long seed) {
    byte[] row(int id) {
      return Payloads.make(kind, bytes, seed + id);
    }
  }

  private LoadBlobs() {}

  public static void main(String[] arguments) throws IOException, SQLException {
    Values values =
        new Values(arguments[0], Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]), Long.parseLong(arguments[3]));
    List<Target> targets = Arrays.stream(arguments).skip(5).map(Target::parse).toList();
    try (Connection connection = Database.connect()) {
      recordDigests(connection, values, arguments[4]);
      for (Target target : targets) {
        System.out.println(fill(connection, values, target));
      }
    }
  }

  private static void recordDigests(Connection connection, Values values, String table) throws SQLException {
    try (PreparedStatement insert = connection.prepareStatement("INSERT INTO " + table + " (id, sha256) VALUES (?, ?)")) {
      for (int id = 1; id <= values.rows(); id++) {
        insert.setInt(1, id);
        insert.setBytes(2, Database.sha256(values.row(id)));
        insert.executeUpdate();
      }
    }
  }

  private static String fill(Connection connection, Values values, Target target) throws IOException, SQLException {
    long storedBytes = 0;
    long compressNanoseconds = 0;
    String statement = "INSERT INTO " + target.table() + " (id, data) VALUES (?, " + target.expression() + ")";
    try (PreparedStatement insert = connection.prepareStatement(statement)) {
      for (int id = 1; id <= values.rows(); id++) {
        byte[] value = values.row(id);
        long started = System.nanoTime();
        byte[] stored = target.codec().compress(value);
        compressNanoseconds += System.nanoTime() - started;
        storedBytes += stored.length;
        if (!Arrays.equals(target.codec().decompress(stored), value)) {
          throw new IllegalStateException(target.codec() + " does not give back row " + id);
        }
        insert.setInt(1, id);
        insert.setBytes(2, stored);
        insert.executeUpdate();
      }
    }
    return Database.json(
        "{\"table\": \"%s\", \"rows\": %d, \"uncompressed_bytes\": %d, \"sent_bytes\": %d, \"compress_seconds\": %.6f}",
        target.table(), values.rows(), (long) values.rows() * values.bytes(), storedBytes, compressNanoseconds / 1e9);
  }
}
