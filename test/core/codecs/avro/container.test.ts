/**
 * Goal: object container files of other implementations are read, cut or damaged ones refused with a code. Method: the files
 * of Avro's own share/test/data (Apache-2.0; test/golden/avro.json holds them in base64) in every codec, cut at every byte
 * and with single bytes changed; files of Java's and fastavro's making are in test/real/avro-peers.test.ts.
 */
import { describe, expect, test } from "bun:test";
import { scanBlocks } from "../../../../src/core/codecs/avro/container.ts";
import { DecodeError } from "../../../../src/core/codecs/record-codec.ts";
import { Failure } from "../../../../src/core/failure/failure.ts";
import golden from "../../../golden/avro.json";
import { containerBlock, containerFile, MARKER, readAll } from "./container-file.ts";

const file = (name: keyof typeof golden) => Uint8Array.fromBase64(golden[name]);
const WEATHER = [
  '{"station":"011990-99999","time":-619524000000,"temp":0}',
  '{"station":"011990-99999","time":-619506000000,"temp":22}',
  '{"station":"011990-99999","time":-619484400000,"temp":-11}',
  '{"station":"012650-99999","time":-655531200000,"temp":111}',
  '{"station":"012650-99999","time":-655509600000,"temp":78}',
];

describe("files of Avro's own tests", () => {
  for (const name of ["weather", "weather-deflate", "weather-snappy", "weather-zstd"] as const)
    test(name, () => expect(readAll(file(name))).toEqual(WEATHER));

  test("a marker that stands in the metadata too", () => {
    expect(readAll(file("syncInMeta"))).toHaveLength(6001);
  });

  test("a codec that is not read is named", () => {
    const bzip2 = Buffer.from(file("weather")).toString("latin1").replace("\bnull", "\nbzip2");
    expect(() => readAll(Uint8Array.from(Buffer.from(bzip2, "latin1")))).toThrow('the codec is "bzip2"');
  });
});

test("a file that is cut anywhere is not whole; one that is not Avro's is told", () => {
  const whole = file("weather-snappy");
  for (let end = 0; end < whole.length; end++)
    expect(() => readAll(whole.subarray(0, end))).toThrow("cut short");
  expect(() => readAll(Uint8Array.of(80, 65, 82, 49))).toThrow("no Avro file begins so");
});

test("a changed byte is refused or read, never worse", () => {
  let refused = 0;
  for (const name of ["weather", "weather-deflate", "weather-snappy", "weather-zstd"] as const) {
    const whole = file(name);
    for (let at = 0; at < whole.length; at++) {
      const changed = whole.slice();
      changed[at]! ^= 0x11;
      try {
        readAll(changed);
      } catch (e) {
        const allowed = e instanceof Failure || e instanceof DecodeError || String(e).includes("cut short");
        if (!allowed || (e instanceof Failure && e.code === "internal.bug"))
          throw new Error(`${name} at ${at}: ${e}`);
        refused++;
      }
    }
  }
  expect(refused).toBeGreaterThan(600);
});

test("a block of more than is allowed is refused before memory is taken", () => {
  expect(() => readAll(file("weather-deflate"), { mostBlock: 20 })).toThrow(
    "has 61 bytes, at most 20 are taken",
  );
  expect(() => readAll(file("weather-zstd"), { mostUnpacked: 20 })).toThrow();
  expect(() => readAll(file("weather-snappy"), { mostUnpacked: 20 })).toThrow("over the limit of 20");
  expect(() => readAll(file("weather-deflate"), { mostUnpacked: 20 })).toThrow();
});

describe("blocks are found without being unpacked", () => {
  const block = (n: number) => containerBlock(n, new Uint8Array(n).fill(2), "null");
  const blocks = Buffer.concat([block(3), block(0), block(200)]);
  const scan = (end: number, last: boolean, mostBytes = 1000) =>
    scanBlocks(blocks, 0, end, { marker: MARKER }, { mostBytes, base: 5000, last });
  const failure = (fn: () => unknown): string => {
    try {
      return JSON.stringify(fn());
    } catch (e) {
      if (e instanceof Failure) return `${e.code}: ${e.message}`;
      throw e;
    }
  };

  test("whole ones are counted, and one that is not there yet waits", () => {
    expect(scan(blocks.length, true)).toEqual({ records: 203, end: blocks.length });
    const second = block(3).length;
    const third = second + block(0).length;
    for (let end = 0; end < blocks.length; end++) {
      const found = end < second ? 0 : end < third ? second : third;
      expect(scan(end, false)).toEqual({ records: found === 0 ? 0 : 3, end: found });
    }
  });

  test("a file that ends within one, a wrong marker and a large one are told with their place", () => {
    const third = block(3).length + block(0).length;
    expect(failure(() => scan(blocks.length - 1, true))).toBe(
      `files.not_avro: the file ends within a block, which begins at byte ${5000 + third}`,
    );
    expect(failure(() => scan(blocks.length, true, 199))).toBe(
      `files.record_too_large: the block at byte ${5000 + third} has 200 bytes, at most 199 are taken`,
    );
    const other = { marker: MARKER.map((b) => b ^ 1) };
    const wrong = () => scanBlocks(blocks, 0, blocks.length, other, { mostBytes: 1000, base: 0, last: true });
    expect(failure(wrong)).toBe(
      `files.not_avro: another marker than the file's behind a block at byte ${block(3).length - 16}`,
    );
  });
});

test("files of every codec are read as they were put together", () => {
  const payloads = Array.from({ length: 250 }, (_, i) => Uint8Array.of(2, 97 + (i % 26)));
  const schema = { type: "record", name: "R", fields: [{ name: "t", type: "string" }] };
  const wanted = payloads.map((p) => `{"t":"${String.fromCharCode(p[1]!)}"}`);
  for (const codec of ["null", "deflate", "snappy", "zstandard"] as const)
    expect(readAll(containerFile(schema, payloads, { codec, perBlock: 64 }))).toEqual(wanted);
});
