// Java's Avro, for tests and benchmarks. Payload files: each payload after its length (four bytes, big endian).
//   random SCHEMA COUNT SEED OUT          payloads by org.apache.avro.util.RandomData
//   resolve PAIRS                         lines of four files, tab between: writer, reader, payloads, result: reads each by both
//                                         schemas, writes it by the reader's; refused: length -1
//   files SCHEMA COUNT SEED FOLDER        object container files, one a codec
//   bench SCHEMA IN ROUNDS                GenericDatumReader alone; prints {"records_per_second", "cpu_per_million", "sum"}
import java.io.*;
import java.lang.management.ManagementFactory;
import java.nio.file.*;
import java.util.*;
import org.apache.avro.*;
import org.apache.avro.file.*;
import org.apache.avro.generic.*;
import org.apache.avro.io.*;
import org.apache.avro.util.RandomData;

public class AvroPeer {
  static Schema schema(String file) throws IOException {
    return new Schema.Parser().parse(new File(file));
  }

  /** Maps keep their order, so that what is written again can be compared byte by byte. */
  static final GenericData ORDERED = new GenericData() {
    @Override
    public Object newMap(Object old, int size) {
      return new LinkedHashMap<Object, Object>();
    }
  };

  static GenericDatumReader<Object> reader(Schema writer, Schema reader) {
    return new GenericDatumReader<>(writer, reader, ORDERED);
  }

  static byte[] next(DataInputStream in) throws IOException {
    int length;
    try {
      length = in.readInt();
    } catch (EOFException e) {
      return null;
    }
    byte[] bytes = new byte[length];
    in.readFully(bytes);
    return bytes;
  }

  static DataInputStream in(String file) throws IOException {
    return new DataInputStream(new BufferedInputStream(new FileInputStream(file), 1 << 20));
  }

  static DataOutputStream out(String file) throws IOException {
    return new DataOutputStream(new BufferedOutputStream(new FileOutputStream(file), 1 << 20));
  }

  static void random(String file, int count, long seed, String to) throws IOException {
    Schema schema = schema(file);
    var writer = new GenericDatumWriter<Object>(schema);
    var buffer = new ByteArrayOutputStream();
    BinaryEncoder encoder = null;
    try (var out = out(to)) {
      for (Object value : new RandomData(schema, count, seed)) {
        buffer.reset();
        encoder = EncoderFactory.get().binaryEncoder(buffer, encoder);
        writer.write(value, encoder);
        encoder.flush();
        out.writeInt(buffer.size());
        buffer.writeTo(out);
      }
    }
  }

  static void resolve(String from, String to, String input, String output) throws IOException {
    Schema readerSchema = schema(to);
    var reader = reader(schema(from), readerSchema);
    var writer = new GenericDatumWriter<Object>(readerSchema);
    var buffer = new ByteArrayOutputStream();
    BinaryDecoder decoder = null;
    BinaryEncoder encoder = null;
    try (var in = in(input); var out = out(output)) {
      for (byte[] bytes = next(in); bytes != null; bytes = next(in)) {
        decoder = DecoderFactory.get().binaryDecoder(bytes, decoder);
        buffer.reset();
        encoder = EncoderFactory.get().binaryEncoder(buffer, encoder);
        try {
          Object value = reader.read(null, decoder);
          writer.write(value, encoder);
          encoder.flush();
          if (!decoder.isEnd()) throw new AvroRuntimeException("bytes follow the value");
        } catch (IOException | RuntimeException e) {
          encoder = null;
          out.writeInt(-1);
          continue;
        }
        out.writeInt(buffer.size());
        buffer.writeTo(out);
      }
    }
  }

  static void files(String file, int count, long seed, String folder) throws IOException {
    Schema schema = schema(file);
    for (String name : List.of("null", "deflate", "snappy", "zstandard", "bzip2")) {
      var writer = new DataFileWriter<Object>(new GenericDatumWriter<>(schema));
      writer.setCodec(CodecFactory.fromString(name));
      writer.setSyncInterval(2048);
      try (var out = writer.create(schema, Path.of(folder, name + ".avro").toFile())) {
        for (Object value : new RandomData(schema, count, seed)) out.append(value);
      }
    }
  }

  static void bench(String file, String input, int rounds) throws IOException {
    Schema schema = schema(file);
    var payloads = new ArrayList<byte[]>();
    try (var in = in(input)) {
      for (byte[] b = next(in); b != null; b = next(in)) payloads.add(b);
    }
    var reader = new GenericDatumReader<GenericRecord>(schema);
    BinaryDecoder decoder = null;
    GenericRecord reused = null;
    long best = Long.MAX_VALUE, bestCpu = Long.MAX_VALUE, sum = 0;
    var thread = ManagementFactory.getThreadMXBean();
    for (int r = 0; r < rounds; r++) {
      long from = System.nanoTime(), cpu = thread.getCurrentThreadCpuTime();
      sum = 0;
      for (byte[] b : payloads) {
        decoder = DecoderFactory.get().binaryDecoder(b, decoder);
        reused = reader.read(reused, decoder);
        sum += (Long) reused.get(0) + ((Collection<?>) reused.get(5)).size();
      }
      best = Math.min(best, System.nanoTime() - from);
      bestCpu = Math.min(bestCpu, thread.getCurrentThreadCpuTime() - cpu);
    }
    System.out.printf(Locale.ROOT, "{\"records_per_second\":%.0f,\"cpu_per_million\":%.4f,\"sum\":%d}%n",
        payloads.size() * 1e9 / best, bestCpu / 1e3 / payloads.size(), sum);
  }

  public static void main(String[] a) throws Exception {
    switch (a[0]) {
      case "random" -> random(a[1], Integer.parseInt(a[2]), Long.parseLong(a[3]), a[4]);
      case "resolve" -> {
        for (String line : Files.readAllLines(Path.of(a[1]))) {
          String[] f = line.split("\t");
          resolve(f[0], f[1], f[2], f[3]);
        }
      }
      case "files" -> files(a[1], Integer.parseInt(a[2]), Long.parseLong(a[3]), a[4]);
      case "bench" -> bench(a[1], a[2], Integer.parseInt(a[3]));
      default -> throw new IllegalArgumentException(a[0]);
    }
  }
}
