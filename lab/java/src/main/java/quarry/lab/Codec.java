package quarry.lab;

import com.aayushatharva.brotli4j.Brotli4jLoader;
import com.aayushatharva.brotli4j.decoder.Decoder;
import com.aayushatharva.brotli4j.encoder.Encoder;
import com.github.luben.zstd.Zstd;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Locale;
import java.util.zip.DataFormatException;
import java.util.zip.Deflater;
import java.util.zip.DeflaterOutputStream;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import java.util.zip.Inflater;
import java.util.zip.InflaterInputStream;
import net.jpountz.lz4.LZ4Compressor;
import net.jpountz.lz4.LZ4CompressorWithLength;
import net.jpountz.lz4.LZ4DecompressorWithLength;
import net.jpountz.lz4.LZ4Factory;
import org.xerial.snappy.Snappy;

/** What the application does with a value before it is stored and after it was fetched. Immutable, thread-safe. */
enum Codec {
  NONE(data -> data, data -> data),
  GZIP(Codec::gzip, data -> new GZIPInputStream(new ByteArrayInputStream(data)).readAllBytes()),
  DEFLATE(Codec::deflate, data -> new InflaterInputStream(new ByteArrayInputStream(data)).readAllBytes()),
  MYSQL(Codec::mysql, Codec::unmysql),
  SNAPPY(Snappy::compress, Snappy::uncompress),
  ZSTD(data -> Zstd.compress(data, Zstd.defaultCompressionLevel()), data -> Zstd.decompress(data, (int) Zstd.getFrameContentSize(data))),
  BROTLI_0(data -> brotli(data, 0), Codec::unbrotli),
  BROTLI_6(data -> brotli(data, 6), Codec::unbrotli),
  BROTLI_11(data -> brotli(data, 11), Codec::unbrotli),
  LZ4_FAST(data -> lz4(LZ4Factory.fastestInstance().fastCompressor(), data), Codec::unlz4),
  LZ4_9(data -> lz4(LZ4Factory.fastestInstance().highCompressor(9), data), Codec::unlz4),
  LZ4_17(data -> lz4(LZ4Factory.fastestInstance().highCompressor(17), data), Codec::unlz4);

  private static final int MYSQL_HEADER_BYTES = 4;
  private static final int MYSQL_LENGTH_MASK = 0x3FFFFFFF; // as UNCOMPRESS() reads it

  interface Transformation {
    byte[] apply(byte[] data) throws IOException;
  }

  static {
    Brotli4jLoader.ensureAvailability();
  }

  private final Transformation compress;
  private final Transformation decompress;

  Codec(Transformation compress, Transformation decompress) {
    this.compress = compress;
    this.decompress = decompress;
  }

  /** The codec called `name` on the lab's command line, e.g. lz4-17. */
  static Codec of(String name) {
    return valueOf(name.toUpperCase(Locale.ROOT).replace('-', '_'));
  }

  byte[] compress(byte[] data) throws IOException {
    return compress.apply(data);
  }

  byte[] decompress(byte[] data) throws IOException {
    return decompress.apply(data);
  }

  private static byte[] gzip(byte[] data) throws IOException {
    ByteArrayOutputStream stored = new ByteArrayOutputStream(data.length);
    try (GZIPOutputStream stream = new GZIPOutputStream(stored)) {
      stream.write(data);
    }
    return stored.toByteArray();
  }

  private static byte[] deflate(byte[] data) throws IOException {
    ByteArrayOutputStream stored = new ByteArrayOutputStream(data.length);
    try (DeflaterOutputStream stream = new DeflaterOutputStream(stored)) {
      stream.write(data);
    }
    return stored.toByteArray();
  }

  /** As the server's COMPRESS() makes it: the length in 4 bytes, the lowest first, then deflate in zlib's frame. */
  private static byte[] mysql(byte[] data) {
    if (data.length == 0) {
      return data;
    }
    Deflater deflater = new Deflater();
    try {
      deflater.setInput(data);
      deflater.finish();
      // Deflate stores what it cannot compress: 5 bytes for each block of 16 KB at least, and zlib's frame.
      ByteBuffer stored = ByteBuffer.allocate(MYSQL_HEADER_BYTES + data.length + data.length / 1000 + 64).order(ByteOrder.LITTLE_ENDIAN);
      stored.putInt(data.length);
      while (!deflater.finished()) {
        deflater.deflate(stored);
      }
      // COMPRESS() adds a point where the last byte is a space, which a CHAR column would lose.
      if (stored.get(stored.position() - 1) == ' ') {
        stored.put((byte) '.');
      }
      return Arrays.copyOf(stored.array(), stored.position());
    } finally {
      deflater.end();
    }
  }

  private static byte[] unmysql(byte[] stored) throws IOException {
    if (stored.length == 0) {
      return stored;
    }
    if (stored.length <= MYSQL_HEADER_BYTES) {
      throw new IOException("a value of " + stored.length + " bytes is too short for MySQL's compressed format");
    }
    byte[] data = new byte[ByteBuffer.wrap(stored).order(ByteOrder.LITTLE_ENDIAN).getInt() & MYSQL_LENGTH_MASK];
    Inflater inflater = new Inflater();
    try {
      inflater.setInput(stored, MYSQL_HEADER_BYTES, stored.length - MYSQL_HEADER_BYTES);
      int filled = inflater.inflate(data);
      int more = inflater.finished() ? 0 : inflater.inflate(new byte[1]); // the checksum at the end is read by this call
      if (filled != data.length || more != 0 || !inflater.finished()) {
        throw new IOException("MySQL's compressed format: " + data.length + " bytes were promised, " + (filled + more) + " came");
      }
      return data;
    } catch (DataFormatException error) {
      throw new IOException(error);
    } finally {
      inflater.end();
    }
  }

  private static byte[] brotli(byte[] data, int quality) throws IOException {
    return Encoder.compress(data, new Encoder.Parameters().setQuality(quality));
  }

  private static byte[] unbrotli(byte[] data) throws IOException {
    return Decoder.decompress(data).getDecompressedData();
  }

  private static byte[] lz4(LZ4Compressor compressor, byte[] data) {
    return new LZ4CompressorWithLength(compressor).compress(data);
  }

  private static byte[] unlz4(byte[] data) {
    return new LZ4DecompressorWithLength(LZ4Factory.fastestInstance().safeDecompressor()).decompress(data);
  }
}
