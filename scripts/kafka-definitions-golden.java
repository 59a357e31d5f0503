// Encodes the sample bodies with Kafka's own message classes and lists its error codes:
//   BODIES.jsonl -> MESSAGES (api kind version variant hex, one a line), ERRORS.tsv (code, name, retriable)
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

public class KafkaDefinitionsGolden {
  public static void main(String[] args) throws Exception {
    ObjectMapper mapper = new ObjectMapper();
    List<String> out = new ArrayList<>();
    for (String line : Files.readAllLines(Path.of(args[0]))) {
      JsonNode sample = mapper.readTree(line);
      String api = sample.get("api").asText(), kind = sample.get("kind").asText();
      short version = (short) sample.get("version").asInt();
      String name = "org.apache.kafka.common.message." + api + (kind.equals("request") ? "Request" : "Response") + "Data";
      Message message = (Message) Class.forName(name + "JsonConverter")
          .getMethod("read", JsonNode.class, short.class).invoke(null, sample.get("body"), version);
      ByteBuffer bytes = MessageUtil.toByteBufferAccessor(message, version).buffer();
      byte[] copy = new byte[bytes.remaining()];
      bytes.get(copy);
      out.add(api + " " + kind + " " + version + " " + sample.get("variant").asInt() + " " + HexFormat.of().formatHex(copy));
    }
    Files.write(Path.of(args[1]), out);
    List<String> errors = new ArrayList<>();
    for (Errors e : Errors.values()) {
      errors.add(e.code() + "\t" + e.name() + "\t" + (e.exception() instanceof RetriableException));
    }
    Files.write(Path.of(args[2]), errors);
  }
}
