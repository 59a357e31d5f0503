/** Goal: OAUTHBEARER says what RFC 7628 says. Method: its examples, and messages written out by hand from section 3.1. */
import { describe, expect, test } from "bun:test";
import { Failure } from "../../../src/core/failure/failure.ts";
import {
  checkToken,
  EXTENSION_KEY,
  EXTENSION_VALUE,
  oauthbearer,
} from "../../../src/core/sasl/oauthbearer.ts";

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const bytes = (s: string) => new TextEncoder().encode(s);

/** The text that the machine sends; throws where it has nothing to send. */
function sent(machine: ReturnType<typeof oauthbearer>, server: Uint8Array | null): string {
  const step = machine.step(server);
  if (step.kind !== "send") throw new Error("nothing to send");
  return text(step.message);
}

const codeOf = (run: () => unknown): string => {
  try {
    run();
  } catch (e) {
    return e instanceof Failure ? e.code : String(e);
  }
  return "none";
};

describe("a token", () => {
  test("goes out with its extensions, in the form of section 3.1", () => {
    const machine = oauthbearer({ token: "a.b-c_~+/==", extensions: { logicalCluster: "lkc-1", x: "a=b" } });
    expect(machine.mechanism).toBe("OAUTHBEARER");
    expect(sent(machine, null)).toBe(
      "n,,\x01auth=Bearer a.b-c_~+/==\x01logicalCluster=lkc-1\x01x=a=b\x01\x01",
    );
    expect(machine.step(bytes(""))).toEqual({ kind: "done" });
    expect(machine.told).toBeNull();
  });

  test("refused: ^A, then the server's words", () => {
    const machine = oauthbearer({ token: "t", extensions: {} });
    expect(sent(machine, null)).toBe("n,,\x01auth=Bearer t\x01\x01");
    expect(sent(machine, bytes('{"status":"invalid_token",\n"scope":"k\x00"}'))).toBe("\x01");
    expect(machine.told).toBe('{"status":"invalid_token", "scope":"k "}');
    for (const more of [new Uint8Array(0), bytes("{}")])
      expect(codeOf(() => machine.step(more))).toBe("sasl.rejected");
  });

  test("a flood of words is cut", () => {
    const machine = oauthbearer({ token: "t", extensions: {} });
    machine.step(null);
    machine.step(new Uint8Array(1 << 20).fill(65));
    expect(machine.told?.length).toBe(1024);
  });

  test("that no header could carry is not sent: it might be a whole file, or hold ^A", () => {
    for (const token of ["", "two words", "a\x01b", "a\nb", "=a", "a".repeat(300_000)]) {
      expect(codeOf(() => oauthbearer({ token, extensions: {} }))).toBe("sasl.credentials_invalid");
      expect(codeOf(() => checkToken(token, "x"))).toBe("sasl.credentials_invalid");
    }
  });
});

test("extensions: names of letters, never `auth`; values without control characters", () => {
  expect(["logicalCluster", "a"].every((k) => EXTENSION_KEY.test(k))).toBe(true);
  expect(["auth", "", "a1", "a b"].some((k) => EXTENSION_KEY.test(k))).toBe(false);
  expect(EXTENSION_VALUE.test("lkc-1 x=y")).toBe(true);
  expect(["", "a\x01", "ü"].some((v) => EXTENSION_VALUE.test(v))).toBe(false);
});
