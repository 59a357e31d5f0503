/** Goal: the test broker's logins are those of RFC 4616 and RFC 5802. Method: our own client machines against it, and by hand. */
import { describe, expect, test } from "bun:test";
import { ERROR } from "../../../src/adapters/kafka/wire/errors.ts";
import { systemSaslCrypto } from "../../../src/adapters/system/sasl-crypto.ts";
import type { SaslMachine } from "../../../src/core/sasl/mechanism.ts";
import { plain } from "../../../src/core/sasl/plain.ts";
import { scram } from "../../../src/core/sasl/scram.ts";
import { type DirectClient, world } from "./direct-client.ts";
import type { SaslMechanismName, SaslServer } from "./sasl-server.ts";

const MECHANISMS: readonly SaslMechanismName[] = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"];
const server: SaslServer = { mechanisms: MECHANISMS, users: { "al,i=ce": "p=w,1", bob: "b" } };
const SASL = { sasl: server };

function machine(mechanism: SaslMechanismName, username: string, password: string): SaslMachine {
  if (mechanism === "PLAIN") return plain({ username, password });
  const hash = mechanism === "SCRAM-SHA-256" ? "sha256" : "sha512";
  return scram(hash, { username, password }, systemSaslCrypto, {
    next: () => 0,
    bytes: (n) => new Uint8Array(n).fill(7),
  });
}

/** Logs in; returns the error code, 0 for success. */
function login(client: DirectClient, mechanism: SaslMechanismName, user: string, password: string): number {
  client.ask("SaslHandshake", 1, { mechanism });
  const steps = machine(mechanism, user, password);
  let step = steps.step(null);
  while (step.kind === "send") {
    const answer = client.ask("SaslAuthenticate", 2, { authBytes: step.message });
    if (answer.errorCode !== 0) return answer.errorCode;
    step = steps.step(answer.authBytes);
  }
  return 0;
}

for (const mechanism of MECHANISMS) {
  describe(mechanism, () => {
    test("lets in who knows the password, commas and equals signs included", () => {
      const { client } = world(SASL);
      expect(login(client, mechanism, "al,i=ce", "p=w,1")).toBe(0);
      expect(client.ask("Metadata", 1, { topics: [] }).topics).toEqual([]);
    });

    test("refuses another password and unknown users, tells it and ends the connection", () => {
      for (const [user, password] of [
        ["bob", "x"],
        ["eve", "b"],
      ] as const) {
        const { client } = world(SASL);
        expect(login(client, mechanism, user, password)).toBe(ERROR.SASL_AUTHENTICATION_FAILED);
        expect(client.closed).toBe("in order");
      }
    });
  });
}

test("a forged server signature is found out by the client", () => {
  const { client } = world({ sasl: { ...server, forgeSignature: true } });
  expect(() => login(client, "SCRAM-SHA-256", "bob", "b")).toThrow();
});

test("a final message with another nonce is refused", () => {
  const { client } = world(SASL);
  client.ask("SaslHandshake", 1, { mechanism: "SCRAM-SHA-256" });
  const say = (text: string) => client.ask("SaslAuthenticate", 1, { authBytes: Buffer.from(text) });
  const first = Buffer.from(say("n,,n=bob,r=abc").authBytes).toString();
  expect(first).toMatch(/^r=abc[^,]+,s=[^,]+,i=4096$/);
  expect(say("c=biws,r=abc,p=AAAA").errorCode).toBe(58);
});

test("a first message that is none is refused", () => {
  const { client } = world(SASL);
  client.ask("SaslHandshake", 1, { mechanism: "SCRAM-SHA-512" });
  expect(client.ask("SaslAuthenticate", 1, { authBytes: Buffer.from("hello") }).errorCode).toBe(58);
});

test("requests before a login end the connection; ApiVersions is allowed", () => {
  const { cluster, client } = world(SASL);
  const names = { clientSoftwareName: "twg", clientSoftwareVersion: "1" };
  expect(client.ask("ApiVersions", 3, names).errorCode).toBe(0);
  client.send("Metadata", 1, { topics: [] });
  expect(client.closed).toBe("in order");
  expect(cluster.complaints[0]).toContain("Metadata before a login");
});

test("an unknown mechanism is told what there is, then the connection ends", () => {
  const { client } = world(SASL);
  const answer = client.ask("SaslHandshake", 1, { mechanism: "GSSAPI" });
  expect(answer).toEqual({ errorCode: ERROR.UNSUPPORTED_SASL_MECHANISM, mechanisms: [...MECHANISMS] });
  expect(client.closed).toBe("in order");
});

test("out of turn: bare tokens, no handshake, a listener without SASL", () => {
  const bare = world(SASL).client;
  bare.send("SaslHandshake", 0, { mechanism: "PLAIN" });
  expect(bare.closed).toBe("in order");
  const early = world(SASL).client;
  expect(early.ask("SaslAuthenticate", 1, { authBytes: new Uint8Array(1) }).errorCode).toBe(
    ERROR.ILLEGAL_SASL_STATE,
  );
  const open = world().client;
  expect(open.ask("SaslHandshake", 1, { mechanism: "PLAIN" }).errorCode).toBe(ERROR.ILLEGAL_SASL_STATE);
});

test("a login that ends must be renewed in time (KIP-368)", () => {
  const { clock, cluster, client } = world({ sasl: { ...server, lifetimeMs: 1000 } });
  expect(login(client, "PLAIN", "bob", "b")).toBe(0);
  clock.advance(900);
  expect(login(client, "PLAIN", "bob", "b")).toBe(0);
  clock.advance(900);
  expect(client.ask("Metadata", 1, { topics: [] }).topics).toEqual([]);
  clock.advance(100);
  client.send("Metadata", 1, { topics: [] });
  expect(client.closed).toBe("in order");
  expect(cluster.complaints[0]).toContain("after the login ended");
});
