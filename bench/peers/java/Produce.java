import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A peer for the produce benchmark, by Kafka's own client: the same letters, batches and linger as the others.
 * Produce BOOTSTRAP TOPIC COUNT SIZE CODEC        prints one JSON line
 */
public class Produce {
  static final int DISTINCT = 1000;

  public static void main(String[] args) {
    int count = Integer.parseInt(args[2]);
    int size = Integer.parseInt(args[3]);
    byte[][] values = new byte[DISTINCT][size];
    int state = 1;
    for (byte[] value : values) {
      for (int i = 0; i < size; i++) {
        state = state * 1664525 + 1013904223;
        value[i] = (byte) (97 + (state >>> 24) % 26);
      }
    }
    Properties o = new Properties();
    o.put("bootstrap.servers", args[0]);
    o.put("acks", "all");
    o.put("enable.idempotence", "true");
    o.put("compression.type", args[4]);
    o.put("batch.size", "1000000");
    o.put("linger.ms", "5");
    o.put("buffer.memory", "67108864");
    AtomicLong records = new AtomicLong();
    long began = System.nanoTime();
    ByteArraySerializer bytes = new ByteArraySerializer();
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(o, bytes, bytes)) {
      for (int i = 0; i < count; i++) {
        producer.send(new ProducerRecord<>(args[1], values[i % DISTINCT]), (placed, failure) -> {
          if (failure == null) records.incrementAndGet();
        });
      }
      producer.flush();
      double seconds = (System.nanoTime() - began) / 1e9;
      System.out.printf("{\"records\":%d,\"seconds\":%.4f}%n", records.get(), seconds);
    }
  }
}
