import { describe, expect, test } from "bun:test";
import { ResponseFramer } from "../../../../src/adapters/kafka/session/framing.ts";

const AT = "broker.test:9092";

function framer(maxBytes = 1000) {
  const sizes: number[] = [];
  const responses: string[] = [];
  const receiver = {
    memory: (size: number) => {
      sizes.push(size);
      return new Uint8Array(size);
    },
    response: (bytes: Uint8Array) => {
      responses.push(Buffer.from(bytes).toString());
    },
  };
  return { framer: new ResponseFramer(receiver, maxBytes, AT), sizes, responses };
}

function framed(...bodies: string[]): Uint8Array {
  const parts = bodies.map((body) => {
    const size = Buffer.alloc(4);
    size.writeInt32BE(body.length);
    return Buffer.concat([size, Buffer.from(body)]);
  });
  return new Uint8Array(Buffer.concat(parts));
}

describe("response framing", () => {
  // Goal: how TCP cuts the stream makes no difference. Method: every chunk size from one byte to all at once.
  test("responses come out whole, whatever the chunks", () => {
    const bytes = framed("abcd", "a longer response", "efgh");
    for (let size = 1; size <= bytes.length; size++) {
      const f = framer();
      for (let at = 0; at < bytes.length; at += size) f.framer.push(bytes.subarray(at, at + size));
      expect(f.responses).toEqual(["abcd", "a longer response", "efgh"]);
      expect(f.sizes).toEqual([4, 17, 4]);
    }
  });

  // Goal: bytes written to `space` count as if pushed. Method: every split of an answer between the two ways.
  test("the rest of a response may be written to its place", () => {
    const bytes = framed("abcdefgh", "next");
    for (let pushed = 4; pushed < 12; pushed++) {
      for (let placed = 1; placed <= 12 - pushed; placed++) {
        const f = framer();
        f.framer.push(bytes.subarray(0, pushed));
        const { space } = f.framer;
        expect(space?.length).toBe(12 - pushed);
        space?.set(bytes.subarray(pushed, pushed + placed));
        f.framer.placed(placed);
        f.framer.push(bytes.subarray(pushed + placed));
        expect(f.responses).toEqual(["abcdefgh", "next"]);
      }
    }
    expect(framer().framer.space).toBeNull();
  });

  test("chunks may be reused by their owner once pushed", () => {
    const f = framer();
    const chunk = framed("abcdefgh");
    f.framer.push(chunk.subarray(0, 8));
    const rest = chunk.slice(8);
    chunk.fill(0);
    f.framer.push(rest);
    expect(f.responses).toEqual(["abcdefgh"]);
  });

  test("a size is checked before memory is asked for, and the largest allowed one passes", () => {
    const f = framer(8);
    expect(() => f.framer.push(framed("123456789").subarray(0, 4))).toThrow(
      expect.objectContaining({ code: "kafka.response_too_large" }),
    );
    expect(f.sizes).toEqual([]);
    const g = framer(8);
    g.framer.push(framed("12345678"));
    expect(g.responses).toEqual(["12345678"]);
  });

  // What other services begin with; each is told for what it is.
  const strangers: [string, Uint8Array, string, string][] = [
    ["HTTP", Buffer.from("HTTP/1.1 400 Bad Request"), "kafka.not_kafka", "HTTP"],
    ["SSH", Buffer.from("SSH-2.0-OpenSSH"), "kafka.not_kafka", "SSH-"],
    ["a TLS alert", new Uint8Array([0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x46]), "kafka.tls_expected", "TLS"],
    ["a negative size", new Uint8Array([0xff, 0xff, 0xff, 0xff]), "kafka.not_kafka", "-1"],
    ["a size too small for a correlation id", new Uint8Array([0, 0, 0, 3]), "kafka.not_kafka", "3"],
  ];
  for (const [what, bytes, code, word] of strangers) {
    test(`${what} is recognised`, () => {
      const { framer: f } = framer();
      let failure: unknown = null;
      try {
        for (const byte of bytes) f.push(new Uint8Array([byte]));
      } catch (e) {
        failure = e;
      }
      expect(failure).toMatchObject({ code, at: AT });
      expect(String(failure)).toContain(word);
    });
  }

  test("memory of a response that will not come whole is handed back", () => {
    const f = framer();
    expect(f.framer.abandon()).toBeNull();
    f.framer.push(framed("abcdefgh").subarray(0, 7));
    expect(f.framer.abandon()?.length).toBe(8);
    expect(f.framer.abandon()).toBeNull();
  });
});
