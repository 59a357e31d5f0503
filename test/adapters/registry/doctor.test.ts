/** Goal: doctor tells what of a registry works and what to do about the rest. Method: registries of ours, one fault each. */
import { afterEach, expect, test } from "bun:test";
import { registryCheckup } from "../../../src/adapters/registry/doctor.ts";
import type { RegistrySettings } from "../../../src/adapters/registry/settings.ts";
import type { Finding } from "../../../src/core/ports/doctor.ts";
import { failed } from "../../brokers/registry/server.ts";
import { avro, RegistryWorld, SETTINGS } from "./world.ts";

const world = new RegistryWorld();
afterEach(() => world.close());

async function findings(
  urls: readonly string[],
  subjects: readonly string[],
  more: Partial<RegistrySettings> = {},
) {
  const found: Finding[] = [];
  const chance = { next: () => 0, bytes: (n: number) => new Uint8Array(n) };
  const checkup = registryCheckup({ ...SETTINGS, urls, ...more }, subjects, { clock: world.clock, chance });
  const signal = new AbortController().signal;
  await world.of(checkup.run({ clock: world.clock, signal, report: (f) => found.push(f) }));
  return found.map((f) => [f.check, f.at, f.verdict, f.seen, f.code]);
}

test("what works: each URL, each subject", async () => {
  const server = world.server();
  server.store.add("a-value", avro());
  server.store.add("a-value", avro('"int"'));
  expect(await findings([server.url], ["a-value"])).toEqual([
    ["registry.url", server.url, "ok", "answers, without a login", null],
    ["registry.subject", "a-value", "ok", "avro, version 2, id 2", null],
  ]);
  expect(await findings([server.url], [])).toEqual([
    ["registry.url", server.url, "ok", "answers, without a login", null],
  ]);
});

test("a subject that is not there is a warning, the registry answered", async () => {
  const server = world.server();
  expect(await findings([server.url], ["b-value"])).toEqual([
    ["registry.url", server.url, "ok", "answers, without a login", null],
    ["registry.subject", "b-value", "warning", "the registry has no such subject", null],
  ]);
});

test("one URL that is down beside one that works; a login that is refused", async () => {
  const [dead, server] = [world.server(), world.server({ authorization: "Bearer t" })];
  await dead.close();
  server.store.add("a-value", avro());
  const login = { by: "token", token: "t" } as const;
  const some = await findings([dead.url, server.url], ["a-value"], { login });
  expect(some.map(([check, at, verdict, , code]) => [check, at, verdict, code]).sort()).toEqual(
    [
      ["registry.url", dead.url, "failed", "registry.unreachable"],
      ["registry.url", server.url, "ok", null],
      ["registry.subject", "a-value", "ok", null],
    ].sort() as never,
  );
  const refused = await findings([server.url], ["a-value"]);
  expect(refused.map(([check, , verdict, , code]) => [check, verdict, code])).toEqual([
    ["registry.url", "failed", "registry.denied"],
    ["registry.subject", "failed", "registry.denied"],
  ]);
});

test("a registry that knows no list of types answers all the same; a server that answers nothing of it does not", async () => {
  const server = world.server();
  const paths = (known: readonly string[]) => {
    server.always = (request) => {
      const { pathname } = new URL(request.url);
      if (known.includes(pathname)) return Response.json([]);
      return pathname === "/config"
        ? failed(403, 40301, "not yours")
        : failed(404, 404, "HTTP 404 Not Found");
    };
  };
  paths(["/config"]);
  expect((await findings([server.url], [])).map(([, , verdict]) => verdict)).toEqual(["ok"]);
  paths(["/subjects"]);
  expect((await findings([server.url], [])).map(([, , verdict]) => verdict)).toEqual(["ok"]);
  paths([]);
  expect((await findings([server.url], [])).map(([, , verdict, , code]) => [verdict, code])).toEqual([
    ["failed", "registry.answer_invalid"],
  ]);
});

test("a page for people is no registry", async () => {
  const server = world.server();
  server.always = () => new Response("<html>", { headers: { "content-type": "text/html" } });
  expect((await findings([server.url], [])).map(([, , verdict, , code]) => [verdict, code])).toEqual([
    ["failed", "registry.answer_invalid"],
  ]);
  server.always = () => failed(503, 50003, "no leader");
  expect((await findings([server.url], [])).map(([, , verdict, , code]) => [verdict, code])).toEqual([
    ["failed", "registry.unavailable"],
  ]);
});
