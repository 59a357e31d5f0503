/** Goal: no bytes make the decoders do anything but return or fail with a code of the bytes. Method: damage, at any place. */
import { expect, test } from "bun:test";
import {
  APIS,
  type ApiName,
  decodeResponse,
  encodeResponse,
} from "../../../../src/adapters/kafka/wire/protocol.ts";
import { Failure } from "../../../../src/core/failure/failure.ts";
import { fuzzProtocol } from "../../../hostile/protocol-target.ts";
import { sampleBody } from "./bodies.ts";

test("20,000 damaged messages: some are refused, some are still messages, nothing else happens", () => {
  let refused = 0;
  for (let n = 0; n < 20_000; n++) if (fuzzProtocol(n)) refused++;
  expect(refused).toBeGreaterThan(2000);
  expect(refused).toBeLessThan(20_000);
});

/** The one cut that is allowed: an ApiVersions response that ends before its throttle time. */
function mayEndAt(api: ApiName, version: number, missing: number): boolean {
  return api === "ApiVersions" && version < 3 && missing === 4;
}

for (const api of Object.keys(APIS) as ApiName[]) {
  test(`${api}: a response cut anywhere is short or over its limits, never a shorter response`, () => {
    const { versions } = APIS[api].response;
    for (let version = versions[0]; version <= versions[1]; version++) {
      const body = { ...sampleBody(APIS[api].response, version, 0), errorCode: 0 };
      const bytes = encodeResponse(api, version, 1, body as never).subarray(4);
      for (let length = 0; length < bytes.length; length++) {
        if (mayEndAt(api, version, bytes.length - length)) continue;
        let code = "none";
        try {
          decodeResponse(api, version, bytes.subarray(0, length));
        } catch (e) {
          code = e instanceof Failure ? e.code : String(e);
        }
        expect(`${version}/${length} ${code}`).toMatch(/ bytes\.(short|limit)$/);
      }
    }
  });
}
