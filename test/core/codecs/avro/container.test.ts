/**
 * Goal: object container files of other implementations are read, cut or damaged ones refused with a code. Method: the files
 * of Avro's own share/test/data (Apache-2.0; test/golden/avro.json holds them in base64) in every codec, cut at every byte
 * and with single bytes changed; files of Java's and fastavro's making are in test/real/avro-peers.test.ts.
 */
import { describe, expect, test } from "bun:test";
import { DecodeError } from "../../../../src/core/codecs/record-codec.ts";
import { Failure } from "../../../../src/core/failure/failure.ts";
import golden from "../../../golden/avro.json";
import { readAll } from "./container-file.ts";

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
  expect(() => readAll(file("weather-deflate"), { mostBlock: 20 })).toThrow("a block of");
  expect(() => readAll(file("weather-zstd"), { mostUnpacked: 20 })).toThrow();
  expect(() => readAll(file("weather-snappy"), { mostUnpacked: 20 })).toThrow("over the limit of 20");
  expect(() => readAll(file("weather-deflate"), { mostUnpacked: 20 })).toThrow();
});
