/**
 * Goal: recovery within `twg stream` ends when it is told to, whatever hangs, and waits for nobody who has ended. Method: raw in a
 * folder, and a sink whose server takes connections and never answers.
 */
import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../src/commands/config-file.ts";
import { RecoveryBeside, StreamRecovery } from "../../src/commands/stream-recovery.ts";
import { EMPTY_STATE, NEW_STREAM } from "../../src/core/coverage/state.ts";
import { encodeState } from "../../src/core/coverage/state-json.ts";
import type { TwgEvent } from "../../src/core/observe/events.ts";
import { fakeCli } from "./fake-cli.ts";

const STREAM = "kafka/c/orders/0/0";

/** Has something of which the table has, as far as is known, nothing. */
async function parts(port: number) {
  const root = mkdtempSync(join(tmpdir(), "twg-stream-recovery-"));
  const place = join(root, "raw", "_twg", "p", "raw", "coverage");
  mkdirSync(place, { recursive: true });
  const covered = [{ from: 0n, next: 100n }];
  const streams = new Map([[STREAM, { ...NEW_STREAM, covered }]]);
  writeFileSync(
    join(place, "coverage-000000000001.json"),
    encodeState({ ...EMPTY_STATE, serial: 1, streams }),
  );
  const file = join(root, "p.toml");
  writeFileSync(
    file,
    `[pipeline]
name = "p"
role = "both"
drain_ms = 0
[source]
type = "kafka"
bootstrap = ["k:1"]
topics = ["orders"]
group = "g"
[[sink]]
name = "raw"
type = "parquet"
role = "primary_raw"
path = "${join(root, "raw")}"
[[sink]]
name = "table"
type = "postgres"
url = "postgres://u:p@127.0.0.1:${port}/d"
sslmode = "disable"
table = "public.t"
connect_timeout_ms = "10m"
`,
  );
  const events: TwgEvent[] = [];
  const observer = { emit: (e: TwgEvent) => void events.push(e) };
  return { of: { loaded: await loadConfig(file), cli: fakeCli(), observer }, events };
}

/** Resolves with the first connection that is made to it. */
function silentServer() {
  const called = Promise.withResolvers<void>();
  const socket = { open: () => called.resolve(), data: () => {} };
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket });
  return { port: listener.port, called: called.promise, stop: () => listener.stop(true) };
}

test("stopped while a sink gives no answer, it ends with its time, and says so", async () => {
  const server = silentServer();
  const { of, events } = await parts(server.port);
  const recovery = new StreamRecovery({ ...of, load: null, untilRecovered: false });
  const done = recovery.run();
  await server.called;
  recovery.stop("SIGTERM received");
  await done;
  server.stop();
  expect(events).toMatchObject([{ e: "recovery.troubled", failure: { code: "delivery.drain_timeout" } }]);
});

test("once live ingest has come to its end nobody asks what the source still holds", async () => {
  const server = silentServer();
  const { of } = await parts(server.port);
  let asked = 0;
  const load = () => {
    asked++;
    return { backlog: 1e9, fetched: 0 };
  };
  const beside = new RecoveryBeside(of, load, true);
  const done = beside.ingestEnded();
  await server.called;
  await beside.end();
  await done;
  server.stop();
  expect(asked).toBe(0);
});
