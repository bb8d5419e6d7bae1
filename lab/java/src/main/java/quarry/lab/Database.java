package quarry.lab;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.Locale;

/** What the programs share: the connection that the lab names in the environment, and the digest that values are compared by. */
final class Database {
  /** How to connect: in the environment, so that forked JVMs have it and no command line shows the password, which may hold any character. */
  static final String URL_VARIABLE = "QUARRY_LAB_JDBC_URL";

  static final String USER_VARIABLE = "QUARRY_LAB_JDBC_USER";
  static final String PASSWORD_VARIABLE = "QUARRY_LAB_JDBC_PASSWORD";

  private Database() {}

  static Connection connect() throws SQLException {
    return DriverManager.getConnection(wanted(URL_VARIABLE), wanted(USER_VARIABLE), wanted(PASSWORD_VARIABLE));
  }

  private static String wanted(String name) throws SQLException {
    String value = System.getenv(name);
    if (value == null) {
      throw new SQLException("the environment variable " + name + " is not set");
    }
    return value;
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
