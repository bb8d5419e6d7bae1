package quarry.lab;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.Locale;

/** What the programs share: the connection that the lab names in the environment, and the digest that values are compared by. */
final class Database {
  /** The JDBC URL with user and password; in the environment, so that forked JVMs have it and no command line shows it. */
  static final String URL_VARIABLE = "QUARRY_LAB_JDBC_URL";

  private Database() {}

  static Connection connect() throws SQLException {
    String url = System.getenv(URL_VARIABLE);
    if (url == null) {
      throw new SQLException("the environment variable " + URL_VARIABLE + " is not set");
    }
    return DriverManager.getConnection(url);
  }

  static byte[] sha256(byte[] data) {
    try {
      return MessageDigest.getInstance("SHA-256").digest(data);
    } catch (NoSuchAlgorithmException error) {
      throw new AssertionError("every Java platform has SHA-256", error);
    }
  }

  static String json(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }
}
