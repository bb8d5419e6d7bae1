package quarry.lab;

import java.nio.charset.StandardCharsets;
import java.util.SplittableRandom;
import java.util.UUID;

/**
 * The values of E3, drawn from a seed: the same kind, size and seed give the same bytes everywhere. Immutable, thread-safe.
 *
 * <p>stub-N: random symbols of an alphabet of N letters. real: one JSON document of a user's site, mostly URLs, UUIDs and repeated keys,
 * as the published user data is described (itself unpublished). All have exactly the size asked for.
 */
final class Payloads {
  private static final String SYMBOLS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  private static final String[] HOSTS = {"static.example.com", "images.example.com", "video.example.net", "www.example.org"};
  private static final String[] TYPES = {"image/jpeg", "image/png", "video/mp4", "font/woff2", "application/json"};
  private static final String[] WORDS = {
    "gallery", "contact", "about", "shop", "blog", "landing", "portfolio", "booking", "events", "members", "header", "footer", "menu"
  };
  private static final String PLAIN =
      ",\"style\":{\"fit\":\"cover\",\"align\":\"center\",\"shadow\":false,\"lazy\":true},\"permissions\":[\"owner\",\"editor\",\"viewer\"]";
  private static final String FRAMED =
      ",\"style\":{\"fit\":\"contain\",\"align\":\"left\",\"shadow\":true,\"lazy\":true},\"permissions\":[\"owner\"]";
  private static final String DOCUMENT_END = "],\"note\":\"";
  private static final String CLOSING = "\"}";

  private Payloads() {}

  static byte[] make(String kind, int bytes, long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    if (kind.equals("real")) {
      return document(random, bytes).getBytes(StandardCharsets.US_ASCII);
    }
    if (kind.startsWith("stub-")) {
      return stub(random, bytes, Integer.parseInt(kind.substring("stub-".length())));
    }
    throw new IllegalArgumentException("unknown kind of data '" + kind + "' (allowed: real, stub-62, stub-10, stub-4, stub-2)");
  }

  private static byte[] stub(SplittableRandom random, int bytes, int alphabet) {
    if (alphabet < 2 || alphabet > SYMBOLS.length()) {
      throw new IllegalArgumentException("an alphabet has 2 to " + SYMBOLS.length() + " symbols (got " + alphabet + ")");
    }
    byte[] data = new byte[bytes];
    for (int i = 0; i < bytes; i++) {
      data[i] = (byte) SYMBOLS.charAt(random.nextInt(alphabet));
    }
    return data;
  }

  /** A JSON object of exactly `bytes` bytes: whole assets as long as they fit, then a note that fills the rest. */
  private static String document(SplittableRandom random, int bytes) {
    StringBuilder text = new StringBuilder(bytes + 512);
    text.append("{\"owner\":\"").append(uuid(random)).append("\",\"site\":\"https://").append(word(random)).append(random.nextInt(10_000));
    text.append(".example.com/\",\"revision\":").append(random.nextInt(1_000)).append(",\"assets\":[");
    int room = bytes - DOCUMENT_END.length() - CLOSING.length();
    if (text.length() > room) {
      throw new IllegalArgumentException("a document of " + bytes + " bytes is too small (at least 160)");
    }
    String separator = "";
    for (String asset = asset(random); text.length() + separator.length() + asset.length() <= room; asset = asset(random)) {
      text.append(separator).append(asset);
      separator = ",";
    }
    text.append(DOCUMENT_END);
    while (text.length() < bytes - CLOSING.length()) {
      text.append(SYMBOLS.charAt(random.nextInt(SYMBOLS.length())));
    }
    return text.append(CLOSING).toString();
  }

  private static String asset(SplittableRandom random) {
    String page = word(random);
    return "{\"id\":\"" + uuid(random) + "\",\"page\":\"" + page + "\",\"url\":\"https://" + HOSTS[random.nextInt(HOSTS.length)] + "/media/"
        + Long.toHexString(random.nextLong()) + "~mv2/" + page + "-" + word(random) + ".bin?w=" + (1 + random.nextInt(4)) * 480
        + "\",\"type\":\"" + TYPES[random.nextInt(TYPES.length)] + "\",\"bytes\":" + random.nextInt(1 << 22) + ",\"public\":" + random.nextBoolean()
        + (random.nextInt(4) == 0 ? FRAMED : PLAIN) + "}";
  }

  private static String word(SplittableRandom random) {
    return WORDS[random.nextInt(WORDS.length)];
  }

  private static String uuid(SplittableRandom random) {
    return new UUID(random.nextLong(), random.nextLong()).toString();
  }
}
