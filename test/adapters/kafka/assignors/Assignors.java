import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.*;

/**
 * Kafka's own assignors over cases from standard input, a line each:
 *   name TAB topic=racks of a partition's replicas/...,... TAB member;instance id or -;subscription in hex TAB ...
 * Racks are joined by +, - is none: orders=a+b/-/c has three partitions.
 * One line of output a case: member=topic/partition,... TAB ... in the order of the input.
 */
public class Assignors {
  public static void main(String[] args) throws Exception {
    Map<String, ConsumerPartitionAssignor> assignors = Map.of(
        "range", new RangeAssignor(), "roundrobin", new RoundRobinAssignor());
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    StringBuilder out = new StringBuilder();
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] parts = line.split("\t");
      // The sticky ones keep state between calls: a fresh one for each case.
      ConsumerPartitionAssignor assignor =
          parts[0].equals("sticky") ? new StickyAssignor()
          : parts[0].equals("cooperative-sticky") ? new CooperativeStickyAssignor()
          : assignors.get(parts[0]);
      Node node = new Node(1, "h", 1);
      List<PartitionInfo> infos = new ArrayList<>();
      for (String topic : parts[1].split(",")) {
        if (topic.isEmpty()) continue;
        String[] t = topic.split("=");
        String[] racks = t[1].split("/");
        for (int p = 0; p < racks.length; p++) {
          Node[] replicas = Arrays.stream(racks[p].split("\\+"))
              .map(r -> r.equals("-") ? node : new Node(r.charAt(0), "h", 1, r)).toArray(Node[]::new);
          infos.add(new PartitionInfo(t[0], p, node, replicas, replicas));
        }
      }
      Cluster cluster = new Cluster("c", List.of(node), infos, Set.of(), Set.of());
      // As the coordinator of a consumer fills it.
      Map<String, Subscription> subscriptions = new HashMap<>();
      List<String> order = new ArrayList<>();
      for (int i = 2; i < parts.length; i++) {
        String[] m = parts[i].split(";");
        Subscription s = ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(HexFormat.of().parseHex(m[2])));
        if (!m[1].equals("-")) s.setGroupInstanceId(Optional.of(m[1]));
        subscriptions.put(m[0], s);
        order.add(m[0]);
      }
      Map<String, Assignment> result = assignor.assign(cluster, new GroupSubscription(subscriptions)).groupAssignment();
      for (int i = 0; i < order.size(); i++) {
        List<String> names = new ArrayList<>();
        for (TopicPartition tp : result.get(order.get(i)).partitions()) names.add(tp.topic() + "/" + tp.partition());
        Collections.sort(names);
        out.append(i == 0 ? "" : "\t").append(order.get(i)).append('=').append(String.join(",", names));
      }
      out.append('\n');
    }
    System.out.print(out);
  }
}
