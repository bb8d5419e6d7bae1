package quarry.lab;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import java.util.concurrent.locks.LockSupport;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;

/**
 * YCSB's binding of E5: one table of a primary key and one payload, every operation one prepared, autocommitted statement.
 *
 * <p>YCSB makes one object per client thread. An error is printed and counted as failed by YCSB; the lab rejects a run that has any. But what NDB calls a temporary
 * error (its redo log or a checkpoint is behind, a buffer is full) is the application's to repeat: reads and writes are, for half a minute, and the wait is part of
 * the operation's latency. Each thread prints at its end how often it did.
 */
public final class PayloadTable extends DB {
  private static final String FIELD = "field0"; // YCSB's own name of its only field
  private static final int TEMPORARY = 1297; // ER_GET_TEMPORARY_ERRMSG, of MySQL Cluster alone
  private static final long REPEATED_FOR_NANOS = 30_000_000_000L;
  private static final long PAUSE_MILLIS = 20;

  private Connection connection;
  private PreparedStatement read;
  private PreparedStatement scan;
  private PreparedStatement update;
  private PreparedStatement insert;
  private PreparedStatement delete;
  private long repeats;

  @Override
  public void init() throws DBException {
    String table = getProperties().getProperty("table", "usertable");
    try {
      connection = Database.connect();
      read = connection.prepareStatement("SELECT payload FROM " + table + " WHERE id = ?");
      scan = connection.prepareStatement("SELECT payload FROM " + table + " WHERE id >= ? ORDER BY id LIMIT ?");
      update = connection.prepareStatement("UPDATE " + table + " SET payload = ? WHERE id = ?");
      insert = connection.prepareStatement("INSERT INTO " + table + " (id, payload) VALUES (?, ?)");
      delete = connection.prepareStatement("DELETE FROM " + table + " WHERE id = ?");
    } catch (SQLException error) {
      throw new DBException(error);
    }
  }

  @Override
  public void cleanup() throws DBException {
    if (repeats > 0) {
      System.err.println("repeated: " + repeats); // ycsb.py reads it
    }
    try {
      connection.close();
    } catch (SQLException error) {
      throw new DBException(error);
    }
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    try {
      read.setString(1, key);
      try (ResultSet rows = repeated(() -> read.executeQuery())) {
        if (!rows.next()) {
          return Status.NOT_FOUND;
        }
        result.put(FIELD, new ByteArrayByteIterator(rows.getBytes(1)));
        return Status.OK;
      }
    } catch (SQLException error) {
      return failed(error);
    }
  }

  @Override
  public Status scan(String table, String startKey, int count, Set<String> fields, Vector<HashMap<String, ByteIterator>> result) {
    try {
      scan.setString(1, startKey);
      scan.setInt(2, count);
      try (ResultSet rows = repeated(() -> scan.executeQuery())) {
        while (rows.next()) {
          HashMap<String, ByteIterator> row = new HashMap<>();
          row.put(FIELD, new ByteArrayByteIterator(rows.getBytes(1)));
          result.add(row);
        }
      }
      return Status.OK;
    } catch (SQLException error) {
      return failed(error);
    }
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    try {
      update.setBytes(1, values.get(FIELD).toArray());
      update.setString(2, key);
      return repeated(() -> update.executeUpdate()) == 1 ? Status.OK : Status.NOT_FOUND;
    } catch (SQLException error) {
      return failed(error);
    }
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    try {
      insert.setString(1, key);
      insert.setBytes(2, values.get(FIELD).toArray());
      repeated(() -> insert.executeUpdate());
      return Status.OK;
    } catch (SQLException error) {
      return failed(error);
    }
  }

  @Override
  public Status delete(String table, String key) {
    try {
      delete.setString(1, key);
      return repeated(() -> delete.executeUpdate()) == 1 ? Status.OK : Status.NOT_FOUND;
    } catch (SQLException error) {
      return failed(error);
    }
  }

  /** Executes a statement. */
  private interface Execution<T> {
    T run() throws SQLException;
  }

  private <T> T repeated(Execution<T> statement) throws SQLException {
    long started = System.nanoTime();
    while (true) {
      try {
        return statement.run();
      } catch (SQLException error) {
        if (error.getErrorCode() != TEMPORARY || System.nanoTime() - started > REPEATED_FOR_NANOS) {
          throw error;
        }
        repeats++;
        LockSupport.parkNanos(PAUSE_MILLIS * 1_000_000);
      }
    }
  }

  private static Status failed(SQLException error) {
    System.err.println("error: " + error.getMessage());
    return Status.ERROR;
  }
}
