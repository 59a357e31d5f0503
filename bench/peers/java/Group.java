import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A peer for the group benchmark, by Kafka's own client: a member of a fresh group, alone in it.
 * Group BOOTSTRAP TOPIC COUNT GROUP        prints one JSON line
 */
public class Group {
  public static void main(String[] args) {
    long want = Long.parseLong(args[2]);
    long records = 0;
    long bytes = 0;
    double first = 0;
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
      }
    }
    double seconds = (System.nanoTime() - began) / 1e9;
    System.out.printf("{\"records\":%d,\"bytes\":%d,\"first\":%.4f,\"seconds\":%.4f}%n", records, bytes, first, seconds);
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }
}
