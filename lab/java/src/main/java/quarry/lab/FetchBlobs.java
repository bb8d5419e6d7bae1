package quarry.lab;

import java.io.IOException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.AuxCounters;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.results.format.ResultFormatType;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.Options;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;

/**
 * E3's measurement: fetch a value by primary key and bring it back to its uncompressed bytes.
 *
 * <pre>FetchBlobs TABLE EXPRESSION CODEC PAYLOADS ROWS THREADS WARMUP_SECONDS SECONDS RESULT_FILE</pre>
 *
 * Before the timed part every value is fetched once and compared with its digest (which also makes it hot), after it the last one again;
 * a difference fails the run.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.SECONDS)
public class FetchBlobs {
  /* JMH forks the JVM that measures. That one ends as soon as the JVM that forked it is gone, and this one with the lab. */
  static {
    ProcessHandle.current().parent().ifPresent(parent -> parent.onExit().thenRun(() -> Runtime.getRuntime().halt(1)));
  }

  /**
   * JMH adds these up over the threads and divides by the measured time. In them are also the fetches before and after it, with which the threads
   * wait for each other; so what a fetch brought is a quotient of two of them.
   */
  @AuxCounters(AuxCounters.Type.OPERATIONS)
  @State(Scope.Thread)
  public static class Traffic {
    public long fetches;
    public long uncompressedBytes;
    public long receivedBytes;
  }

  @Param("")
  public String table;

  @Param("")
  public String expression;

  @Param("")
  public String codec;

  @Param("")
  public String payloads;

  @Param("1")
  public int rows;

  private Codec transformation;
  private Connection connection;
  private PreparedStatement select;
  private SplittableRandom random;
  private int lastId;
  private byte[] lastValue;

  @Setup(Level.Trial)
  public void open() throws IOException, SQLException {
    transformation = Codec.of(codec);
    connection = Database.connect();
    select = connection.prepareStatement("SELECT " + expression + " FROM " + table + " WHERE id = ?");
    random = new SplittableRandom(System.nanoTime());
    for (int id = 1; id <= rows; id++) {
      verify(id, transformation.decompress(receive(id)));
    }
  }

  @Benchmark
  public byte[] fetch(Traffic traffic) throws IOException, SQLException {
    lastId = 1 + random.nextInt(rows);
    byte[] received = receive(lastId);
    lastValue = transformation.decompress(received);
    traffic.fetches++;
    traffic.receivedBytes += received.length;
    traffic.uncompressedBytes += lastValue.length;
    return lastValue;
  }

  @TearDown(Level.Trial)
  public void close() throws SQLException {
    verify(lastId, lastValue);
    connection.close();
  }

  private byte[] receive(int id) throws SQLException {
    select.setInt(1, id);
    try (ResultSet result = select.executeQuery()) {
      if (!result.next()) {
        throw new IllegalStateException(table + " has no row " + id);
      }
      return result.getBytes(1);
    }
  }

  private void verify(int id, byte[] value) throws SQLException {
    try (PreparedStatement expected = connection.prepareStatement("SELECT sha256 FROM " + payloads + " WHERE id = ?")) {
      expected.setInt(1, id);
      try (ResultSet result = expected.executeQuery()) {
        if (!result.next() || !Arrays.equals(result.getBytes(1), Database.sha256(value))) {
          throw new IllegalStateException("row " + id + " of " + table + " is not the value that was stored");
        }
      }
    }
  }

  public static void main(String[] arguments) throws RunnerException {
    Options options =
        new OptionsBuilder()
            .include("\\b" + FetchBlobs.class.getSimpleName() + "\\b")
            .param("table", arguments[0])
            .param("expression", arguments[1])
            .param("codec", arguments[2])
            .param("payloads", arguments[3])
            .param("rows", arguments[4])
            .threads(Integer.parseInt(arguments[5]))
            .forks(1)
            .warmupIterations(1)
            .warmupTime(TimeValue.seconds(Long.parseLong(arguments[6])))
            .measurementIterations(1)
            .measurementTime(TimeValue.seconds(Long.parseLong(arguments[7])))
            .shouldFailOnError(true)
            .resultFormat(ResultFormatType.JSON)
            .result(arguments[8])
            .build();
    new Runner(options).run();
  }
}
