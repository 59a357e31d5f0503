import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.zip.CRC32;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A peer for the group benchmark, by Kafka's own client: a member of a fresh group, alone in it.
 * Group BOOTSTRAP TOPIC COUNT GROUP        prints one JSON line; with BENCH_HASH=1 the sum of the CRC-32 of all values as well
 */
public class Group {
  public static void main(String[] args) {
    long want = Long.parseLong(args[2]);
    long records = 0;
    long bytes = 0;
    double first = 0;
    boolean hashed = "1".equals(System.getenv("BENCH_HASH"));
    long hash = 0;
    CRC32 crc = new CRC32();
    long began = System.nanoTime();
    Properties o = new Properties();
    o.put("bootstrap.servers", args[0]);
    o.put("group.id", args[3]);
    o.put("auto.offset.reset", "earliest");
    ByteArrayDeserializer raw = new ByteArrayDeserializer();
    KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(o, raw, raw);
    consumer.subscribe(List.of(args[1]));
    while (records < want) {
      for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofSeconds(1))) {
        if (records == 0) first = (System.nanoTime() - began) / 1e9;
        records++;
        bytes += r.value().length;
        if (hashed) {
          crc.reset();
          crc.update(r.value());
          hash += crc.getValue();
        }
      }
    }
    double seconds = (System.nanoTime() - began) / 1e9;
    System.out.printf(
        "{\"records\":%d,\"bytes\":%d,\"first\":%.4f,\"seconds\":%.4f,\"hash\":\"%016x\"}%n",
        records, bytes, first, seconds, hash);
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }
}
