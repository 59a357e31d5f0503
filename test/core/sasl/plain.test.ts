import { expect, test } from "bun:test";
import { systemSaslCrypto } from "../../../src/adapters/system/sasl-crypto.ts";
import { plain } from "../../../src/core/sasl/plain.ts";
import { startSasl } from "../../../src/core/sasl/start.ts";

const chance = { next: () => 0, bytes: (n: number) => new Uint8Array(n) };

test("PLAIN sends one message of RFC 4616 and ignores what the server adds to its yes", () => {
  const machine = startSasl("PLAIN", { username: "bob", password: "bob,pw=1ü" }, systemSaslCrypto, chance);
  const step = machine.step(null);
  // NUL "bob" NUL, then the password as UTF-8: nothing is escaped.
  expect(step).toEqual({ kind: "send", message: new TextEncoder().encode("\0bob\0bob,pw=1ü") });
  expect(machine.step(new TextEncoder().encode("welcome"))).toEqual({ kind: "done" });
});

test("a NUL in the password can't be carried", () => {
  expect(() => plain({ username: "bob", password: "a\0b" })).toThrow(
    expect.objectContaining({ code: "sasl.credentials_invalid" }),
  );
});
