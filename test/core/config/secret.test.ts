// Goal: a secret never prints, however it is looked at. Method: every common way of turning a value into text.
import { expect, test } from "bun:test";
import { inspect } from "node:util";
import { FileRef, Secret, SecretRef } from "../../../src/core/config/secret.ts";

const secret = new Secret("hunter2");

test.each([
  ["string", String(secret)],
  ["template", `${secret}`],
  ["toString", secret.toString()],
  ["addition", `${secret as unknown as string}`],
  ["JSON", JSON.stringify({ secret })],
  ["node inspect", inspect({ a: { b: secret } }, { depth: 9, showHidden: true })],
  ["bun inspect", Bun.inspect({ a: { b: secret } })],
  ["error", String(new Error(`bad: ${secret}`))],
  ["keys", JSON.stringify(Object.getOwnPropertyNames(secret).concat(Object.values(secret) as string[]))],
] as const)("%s shows no text", (_, shown) => {
  expect(shown).not.toContain("hunter2");
});

test("a structured clone carries nothing either", () => {
  expect(JSON.stringify(structuredClone({ secret }))).not.toContain("hunter2");
});

test("only reveal gives the text", () => {
  expect(secret.reveal()).toBe("hunter2");
  expect(secret.empty).toBe(false);
  expect(new Secret("").empty).toBe(true);
  expect(JSON.stringify(new SecretRef("n"))).toBe('{"secret":"n"}');
  expect(JSON.stringify(new FileRef("/p"))).toBe('{"file":"/p"}');
});
