/**
 * Goal: our bytes are Kafka's bytes. Method: sample bodies of every API, version and kind, encoded by the message
 * classes of kafka-clients 4.4.0 (fixtures/messages.txt), must come out of our encoder and be read by our decoder.
 */
import { expect, test } from "bun:test";
import { join } from "node:path";
import type { Body } from "../../../../src/adapters/kafka/wire/codec.ts";
import { KAFKA_ERRORS } from "../../../../src/adapters/kafka/wire/errors.ts";
import {
  APIS,
  type ApiName,
  decodeRequest,
  decodeResponse,
  encodeRequest,
  encodeResponse,
  isFlexible,
} from "../../../../src/adapters/kafka/wire/protocol.ts";
import { sampleBody, type Variant } from "./bodies.ts";

const fixtures = join(import.meta.dir, "fixtures");
const lines = (await Bun.file(join(fixtures, "messages.txt")).text()).trim().split("\n");

/** Header of the request with correlation id 7 and client id "t": key, version, id, length and text, tag buffer. */
function requestHeader(api: ApiName, version: number): string {
  const h = Buffer.alloc(11);
  h.writeInt16BE(APIS[api].key, 0);
  h.writeInt16BE(version, 2);
  h.writeInt32BE(7, 4);
  h.writeInt16BE(1, 8);
  h.write("t", 10);
  return h.toString("hex") + (isFlexible(api, version) ? "00" : "");
}

function responseHeader(api: ApiName, version: number): string {
  return `00000007${api !== "ApiVersions" && isFlexible(api, version) ? "00" : ""}`;
}

function sized(hex: string): string {
  return (hex.length / 2).toString(16).padStart(8, "0") + hex;
}

function checkRequest(api: ApiName, version: number, body: Body, hex: string): void {
  const whole = sized(requestHeader(api, version) + hex);
  expect(Buffer.from(encodeRequest(api, version, 7, "t", body as never)).toString("hex")).toBe(whole);
  const decoded = decodeRequest(Buffer.from(whole, "hex").subarray(4));
  expect({ key: decoded.apiKey, version: decoded.version, id: decoded.correlationId }).toEqual({
    key: APIS[api].key,
    version,
    id: 7,
  });
  expect(decoded.body as object).toMatchObject(body as object);
}

function checkResponse(api: ApiName, version: number, body: Body, hex: string): void {
  const whole = sized(responseHeader(api, version) + hex);
  expect(Buffer.from(encodeResponse(api, version, 7, body as never)).toString("hex")).toBe(whole);
  expect(decodeResponse(api, version, Buffer.from(whole, "hex").subarray(4)) as object).toMatchObject(
    body as object,
  );
}

test("the fixture holds two samples of every version of every message", () => {
  const apis = Object.values(APIS);
  const versions = apis.reduce((n, a) => n + a.request.versions[1] - a.request.versions[0] + 1, 0);
  expect(lines.length).toBe(versions * 2 * 2);
});

for (const api of Object.keys(APIS) as ApiName[]) {
  for (const kind of ["request", "response"] as const) {
    test(`${api} ${kind}: bytes of Kafka's own classes, both ways, in every version`, () => {
      for (const line of lines.filter((l) => l.startsWith(`${api} ${kind} `))) {
        const [, , version, variant, hex = ""] = line.split(" ");
        const body = sampleBody(APIS[api][kind], Number(version), Number(variant) as Variant);
        if (kind === "request") checkRequest(api, Number(version), body, hex);
        else checkResponse(api, Number(version), body, hex);
      }
    });
  }
}

test("error codes, names and retriability are those of Kafka's Errors class", async () => {
  const theirs = (await Bun.file(join(fixtures, "errors.tsv")).text()).trim();
  expect(KAFKA_ERRORS.map((e) => `${e.code}\t${e.name}\t${e.retriable}`).join("\n")).toBe(theirs);
});
