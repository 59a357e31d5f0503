import { describe, expect, test } from "bun:test";
import { systemSaslCrypto } from "../../../src/adapters/system/sasl-crypto.ts";
import type { Credentials, SaslMachine } from "../../../src/core/sasl/mechanism.ts";
import { scram } from "../../../src/core/sasl/scram.ts";
import { startSasl } from "../../../src/core/sasl/start.ts";
import type { Chance } from "../../../src/core/time/chance.ts";
import { startExchange } from "../../brokers/kafka/sasl-server.ts";

/** Gives the bytes whose base64 is the nonce of a vector. */
const nonceOf = (base64: string): Chance => ({
  next: () => 0,
  bytes: () => new Uint8Array(Buffer.from(base64, "base64")),
});
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("utf8");
const utf8 = (s: string) => new TextEncoder().encode(s);
const sent = (machine: SaslMachine, server: string | null) => {
  const step = machine.step(server === null ? null : utf8(server));
  return step.kind === "send" ? text(step.message) : step.kind;
};

// RFC 7677 section 3: the published exchange of user "user" with password "pencil".
const NONCE = "rOprNGfwEbeRWgbNEkqO";
const SERVER_NONCE = `${NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0`;
const SERVER_FIRST = `r=${SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096`;
const SERVER_FINAL = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
const USER: Credentials = { username: "user", password: "pencil" };
const sha256 = (credentials = USER) => scram("sha256", credentials, systemSaslCrypto, nonceOf(NONCE));

describe("SCRAM", () => {
  test("the SHA-256 exchange of RFC 7677, byte for byte", () => {
    const machine = sha256();
    expect(machine.mechanism).toBe("SCRAM-SHA-256");
    expect(sent(machine, null)).toBe(`n,,n=user,r=${NONCE}`);
    expect(sent(machine, SERVER_FIRST)).toBe(
      `c=biws,r=${SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=`,
    );
    expect(sent(machine, SERVER_FINAL)).toBe("done");
  });

  // There is no RFC vector for SHA-512: the other side is the test broker's own implementation over node:crypto.
  // The password holds what must not be escaped, the user name what must.
  for (const mechanism of ["SCRAM-SHA-256", "SCRAM-SHA-512"] as const) {
    test(`${mechanism}: a server of its own accepts the proof and is accepted`, () => {
      const credentials = { username: "a=b,c", password: "p,w=1" };
      const server = startExchange({ mechanisms: [mechanism], users: { "a=b,c": "p,w=1" } }, mechanism, 7, 0);
      const machine = startSasl(mechanism, credentials, systemSaslCrypto, nonceOf(NONCE));
      let answer: Uint8Array | null = null;
      for (;;) {
        const step = machine.step(answer);
        if (step.kind === "done") break;
        const reply = server(step.message);
        if (reply.kind === "refused") throw new Error(reply.reason);
        answer = reply.message;
      }
      expect(machine.mechanism).toBe(mechanism);
    });
  }

  test("only the user name is escaped", () => {
    const machine = sha256({ username: "a=b,c", password: "p,w=1" });
    expect(sent(machine, null)).toBe(`n,,n=a=3Db=2Cc,r=${NONCE}`);
  });

  // One fault each in the server's first message. Goal: no proof goes out to a server that breaks the rules.
  const firsts: [string, string][] = [
    ["a nonce that is not ours", "r=other123,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"],
    ["our nonce alone", `r=${NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096`],
    ["a control character in the nonce", `r=${NONCE}\u0001x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096`],
    ["too few iterations", `r=${SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4095`],
    ["too many iterations", `r=${SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1000001`],
    ["iterations that are no number", `r=${SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096x`],
    ["a salt that is not base64", `r=${SERVER_NONCE},s=***=,i=4096`],
    ["an empty salt", `r=${SERVER_NONCE},s=,i=4096`],
    ["a missing count", `r=${SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==`],
    ["another order", `s=W22ZaJ0SNY7soEsUEjb6gQ==,r=${SERVER_NONCE},i=4096`],
    ["a mandatory extension", `m=x,r=${SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096`],
    ["no attribute at all", "hello"],
    ["nothing", ""],
    ["more bytes than any server needs", `r=${NONCE}${"x".repeat(5000)}`],
  ];
  for (const [what, message] of firsts) {
    test(`${what} is refused`, () => {
      const machine = sha256();
      machine.step(null);
      expect(() => machine.step(utf8(message))).toThrow(
        expect.objectContaining({ code: "sasl.server_invalid" }),
      );
    });
  }

  test("bytes that are not UTF-8 are refused", () => {
    const machine = sha256();
    machine.step(null);
    expect(() => machine.step(new Uint8Array([0x72, 0x3d, 0xff, 0xfe]))).toThrow(
      expect.objectContaining({ code: "sasl.server_invalid" }),
    );
  });

  test("extensions behind the count are ignored, as the RFC says", () => {
    const machine = sha256();
    machine.step(null);
    expect(sent(machine, `${SERVER_FIRST},x=later`)).toStartWith("c=biws,");
  });

  test("a wrong signature, an error and a message without a signature end the exchange", () => {
    const finals: [string, string][] = [
      ["v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", "sasl.server_unproven"],
      ["v=", "sasl.server_unproven"],
      ["e=invalid-proof", "sasl.rejected"],
      ["x=1", "sasl.server_invalid"],
    ];
    for (const [message, code] of finals) {
      const machine = sha256();
      machine.step(null);
      machine.step(utf8(SERVER_FIRST));
      expect(() => machine.step(utf8(message))).toThrow(expect.objectContaining({ code }));
      // And it stays over: a second final message can't repair it.
      expect(() => machine.step(utf8(SERVER_FINAL))).toThrow(
        expect.objectContaining({ code: "internal.bug" }),
      );
    }
  });

  test("an error in place of the first message is the server's refusal, in its words", () => {
    const machine = sha256();
    machine.step(null);
    expect(() => machine.step(utf8("e=unknown-user"))).toThrow("unknown-user");
  });
});
