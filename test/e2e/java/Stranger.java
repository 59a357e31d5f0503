import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A member of a group by Kafka's own client. Arguments: bootstrap, topic, group, protocol ("consumer", or the class of
 * an assignor). Commits what it read, and prints it as lines `partition from next` once it is committed; `member` when
 * it has partitions. Leaves when its standard input ends.
 */
public class Stranger {
  static final Map<TopicPartition, long[]> read = new HashMap<>();
  static KafkaConsumer<byte[], byte[]> consumer;

  static void commit(Collection<TopicPartition> of) {
    Map<TopicPartition, OffsetAndMetadata> marks = new HashMap<>();
    for (TopicPartition p : of) if (read.containsKey(p)) marks.put(p, new OffsetAndMetadata(read.get(p)[1]));
    if (marks.isEmpty()) return;
    consumer.commitSync(marks);
    for (TopicPartition p : marks.keySet()) {
      long[] range = read.remove(p);
      System.out.println(p.partition() + " " + range[0] + " " + range[1]);
    }
    System.out.flush();
  }

  public static void main(String[] args) throws Exception {
    Properties o = new Properties();
    o.put("bootstrap.servers", args[0]);
    o.put("group.id", args[2]);
    o.put("enable.auto.commit", "false");
    o.put("auto.offset.reset", "earliest");
    o.put("key.deserializer", ByteArrayDeserializer.class.getName());
    o.put("value.deserializer", ByteArrayDeserializer.class.getName());
    if (args[3].equals("consumer")) o.put("group.protocol", "consumer");
    else {
      o.put("partition.assignment.strategy", args[3]);
      o.put("session.timeout.ms", "6000");
      o.put("heartbeat.interval.ms", "1000");
    }
    consumer = new KafkaConsumer<>(o);
    Thread end = new Thread(() -> {
      try {
        while (System.in.read() >= 0) {}
      } catch (java.io.IOException e) {
        // As good as an end.
      }
    });
    end.setDaemon(true);
    end.start();
    consumer.subscribe(List.of(args[1]), new ConsumerRebalanceListener() {
      public void onPartitionsAssigned(Collection<TopicPartition> p) {
        if (!p.isEmpty()) System.out.println("member");
        System.out.flush();
      }

      public void onPartitionsRevoked(Collection<TopicPartition> p) {
        commit(p);
      }

      public void onPartitionsLost(Collection<TopicPartition> p) {
        for (TopicPartition one : p) read.remove(one);
      }
    });
    while (end.isAlive()) {
      for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(100))) {
        TopicPartition p = new TopicPartition(r.topic(), r.partition());
        long[] range = read.computeIfAbsent(p, k -> new long[] {r.offset(), r.offset()});
        range[1] = r.offset() + 1;
      }
      try {
        commit(new ArrayList<>(read.keySet()));
      } catch (org.apache.kafka.common.errors.RebalanceInProgressException e) {
        // Goes with the next one, or when they are revoked.
      }
    }
    consumer.close();
  }
}
