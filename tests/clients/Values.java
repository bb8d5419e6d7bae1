import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Blob;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;

/**
 * Stores values through Connector/J and fetches them again.
 *
 * <p>usage: java Values JDBC_URL TABLE INPUT_DIRECTORY OUTPUT_DIRECTORY MODE
 *
 * <p>MODE: bytes (setBytes, getBytes), stream (setBinaryStream of unknown length, getBinaryStream), length
 * (setBinaryStream with a length, getBinaryStream), blob (setBlob, getBlob and its ranges), batch (addBatch,
 * getObject). Standard input: a line "id size" for each value, size -1 for NULL; the value is
 * INPUT_DIRECTORY/&lt;id&gt;.bin, and what comes back goes to OUTPUT_DIRECTORY/&lt;id&gt;.bin, no file for NULL.
 */
public final class Values {
  private static final int PIECE_BYTES = 100_003;

  private record Value(int id, long size) {}

  private final Connection connection;
  private final String table;
  private final Path input;
  private final Path output;
  private final String mode;

  private Values(Connection connection, String[] arguments) {
    this.connection = connection;
    this.table = arguments[1];
    this.input = Path.of(arguments[2]);
    this.output = Path.of(arguments[3]);
    this.mode = arguments[4];
  }

  public static void main(String[] arguments) throws Exception {
    if (arguments.length != 5) {
      throw new IllegalArgumentException("usage: JDBC_URL TABLE INPUT_DIRECTORY OUTPUT_DIRECTORY MODE");
    }
    List<Value> values = new ArrayList<>();
    try (Scanner lines = new Scanner(System.in)) {
      while (lines.hasNextInt()) {
        values.add(new Value(lines.nextInt(), lines.nextLong()));
      }
    }
    try (Connection connection = DriverManager.getConnection(arguments[0] + "&password=" + System.getenv("QUARRY_TEST_PASSWORD"))) {
      Values client = new Values(connection, arguments);
      client.store(values);
      client.fetchAll(values);
      client.fetchEach(values);
    }
    System.out.println(values.size() + " values");
  }

  private Path source(Value value) {
    return input.resolve(value.id() + ".bin");
  }

  private void store(List<Value> values) throws SQLException, IOException {
    String insert = "INSERT INTO " + table + " VALUES (?, ?)";
    try (PreparedStatement statement = connection.prepareStatement(insert)) {
      connection.setAutoCommit(!mode.equals("batch"));
      for (Value value : values) {
        statement.setInt(1, value.id());
        if (value.size() < 0) {
          statement.setNull(2, Types.BLOB);
          execute(statement);
        } else if (mode.equals("bytes") || mode.equals("batch")) {
          statement.setBytes(2, Files.readAllBytes(source(value)));
          execute(statement);
        } else {
          try (InputStream stream = Files.newInputStream(source(value))) {
            switch (mode) {
              case "stream" -> statement.setBinaryStream(2, stream);
              case "length" -> statement.setBinaryStream(2, stream, value.size());
              case "blob" -> setBlob(statement, stream, value);
              default -> throw new IllegalArgumentException("mode " + mode);
            }
            execute(statement);
          }
        }
      }
      if (mode.equals("batch")) {
        statement.executeBatch();
        connection.commit();
        connection.setAutoCommit(true);
      }
    }
  }

  private void execute(PreparedStatement statement) throws SQLException {
    if (mode.equals("batch")) {
      statement.addBatch();
    } else if (statement.executeUpdate() != 1) {
      throw new SQLException("not one row inserted");
    }
  }

  /** Even ids: a Blob of the driver, filled before; odd ids: the stream itself. */
  private void setBlob(PreparedStatement statement, InputStream stream, Value value) throws SQLException, IOException {
    if (value.id() % 2 == 1) {
      statement.setBlob(2, stream);
      return;
    }
    Blob blob = connection.createBlob();
    if (value.size() > 0) {
      blob.setBytes(1, stream.readAllBytes());
    }
    statement.setBlob(2, blob);
  }

  /** All rows by one statement; the bytes themselves are compared here, the caller compares those of fetchEach. */
  private void fetchAll(List<Value> values) throws SQLException, IOException {
    int rows = 0;
    try (PreparedStatement statement = connection.prepareStatement("SELECT id, b FROM " + table)) {
      statement.setFetchSize(1);
      try (ResultSet result = statement.executeQuery()) {
        while (result.next()) {
          ++rows;
          Path source = input.resolve(result.getInt(1) + ".bin");
          byte[] bytes = result.getBytes(2);
          if (result.wasNull() != (bytes == null) || (bytes == null) == Files.exists(source)) {
            throw new SQLException("NULL is not where it should be: id " + result.getInt(1));
          }
          if (bytes != null && !java.util.Arrays.equals(bytes, Files.readAllBytes(source))) {
            throw new SQLException("wrong bytes: id " + result.getInt(1));
          }
        }
      }
    }
    if (rows != values.size()) {
      throw new SQLException(rows + " rows instead of " + values.size());
    }
  }

  private void fetchEach(List<Value> values) throws SQLException, IOException {
    try (PreparedStatement statement = connection.prepareStatement("SELECT b FROM " + table + " WHERE id = ?")) {
      for (Value value : values) {
        statement.setInt(1, value.id());
        try (ResultSet result = statement.executeQuery()) {
          if (!result.next()) {
            throw new SQLException("no row with id " + value.id());
          }
          write(result, output.resolve(value.id() + ".bin"));
        }
      }
    }
  }

  private void write(ResultSet result, Path target) throws SQLException, IOException {
    switch (mode) {
      case "bytes" -> {
        byte[] bytes = result.getBytes(1);
        if (!result.wasNull()) {
          Files.write(target, bytes);
        }
      }
      case "batch" -> {
        Object object = result.getObject(1);
        if (object instanceof Blob blob) {
          Files.write(target, blob.length() == 0 ? new byte[0] : blob.getBytes(1, (int) blob.length()));
        } else if (object != null) {
          Files.write(target, (byte[]) object);
        }
      }
      case "blob" -> writeRanges(result.getBlob(1), target);
      default -> {
        try (InputStream stream = result.getBinaryStream(1)) {
          if (stream != null) {
            copy(stream, target);
          }
        }
      }
    }
  }

  /** By the Blob's ranges, whose positions count from 1. */
  private void writeRanges(Blob blob, Path target) throws SQLException, IOException {
    if (blob == null) {
      return;
    }
    try (OutputStream file = Files.newOutputStream(target)) {
      long length = blob.length();
      for (long position = 1; position <= length; position += PIECE_BYTES) {
        file.write(blob.getBytes(position, (int) Math.min(PIECE_BYTES, length - position + 1)));
      }
    }
  }

  private void copy(InputStream stream, Path target) throws IOException {
    byte[] piece = new byte[PIECE_BYTES];
    try (OutputStream file = Files.newOutputStream(target)) {
      for (int got = stream.read(piece); got >= 0; got = stream.read(piece)) {
        file.write(piece, 0, got);
      }
    }
  }
}
