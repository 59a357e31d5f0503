import java.security.MessageDigest;
import java.util.*;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** As python/read_topic.py, with Kafka's own consumer. Arguments: bootstrap, topic, isolation. */
public class ReadTopic {
    static String digest(byte[] value) throws Exception {
        if (value == null) return "null";
        byte[] sha = MessageDigest.getInstance("SHA-1").digest(value);
        return "\"" + value.length + ":" + HexFormat.of().formatHex(sha) + "\"";
    }

    static String header(Header h) {
        String value = h.value() == null ? "null" : "\"" + HexFormat.of().formatHex(h.value()) + "\"";
        return "[\"" + h.key() + "\"," + value + "]";
    }

    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", args[0]);
        p.put("isolation.level", args[2]);
        p.put("enable.auto.commit", "false");
        p.put("max.partition.fetch.bytes", "20000000");
        p.put("fetch.max.bytes", "100000000");
        List<String> out = new ArrayList<>();
        var bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(p, bytes, bytes)) {
            List<TopicPartition> all = consumer.partitionsFor(args[1]).stream()
                .map(i -> new TopicPartition(args[1], i.partition()))
                .sorted(Comparator.comparingInt(TopicPartition::partition)).collect(Collectors.toList());
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            Map<Integer, List<String>> rows = new TreeMap<>();
            while (all.stream().anyMatch(t -> consumer.position(t) < ends.get(t))) {
                for (ConsumerRecord<byte[], byte[]> r : consumer.poll(java.time.Duration.ofSeconds(1))) {
                    String headers = Arrays.stream(r.headers().toArray()).map(ReadTopic::header).collect(Collectors.joining(","));
                    rows.computeIfAbsent(r.partition(), k -> new ArrayList<>()).add("[" + r.partition() + "," + r.offset() + ","
                        + r.timestamp() + "," + digest(r.key()) + "," + digest(r.value()) + ",[" + headers + "]]");
                }
            }
            rows.values().forEach(out::addAll);
        }
        System.out.println("[" + String.join(",", out) + "]");
    }
}
