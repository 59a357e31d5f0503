/**
 * Goal: `twg health` tells what the pipeline's own door says, and nothing good where nobody answers.
 * Method: a real HTTP server in the pipeline's place; configurations with and without an address.
 */
import { afterAll, expect, test } from "bun:test";
import { runHealth } from "../../src/commands/health.ts";
import { fakeCli, fileWith, ORDERS } from "./fake-cli.ts";

let status = 200;
const asked: string[] = [];
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request) {
    asked.push(new URL(request.url).pathname);
    return new Response(status === 200 ? "ok" : "source failed", { status });
  },
});
afterAll(() => server.stop(true));

const listening = (listen: string) => fileWith(`${ORDERS}\n[observability]\nlisten = "${listen}"\n`);
const here = () => listening(`127.0.0.1:${server.port}`);

async function health(config: string, probe: "live" | "ready") {
  const cli = fakeCli();
  const code = await runHealth({ config, probe, timeout: 2_000 }, cli);
  return { code, out: cli.stdout() };
}

test("what the door says is printed, and decides", async () => {
  expect(await health(here(), "live")).toEqual({ code: 0, out: "live: ok (HTTP 200)\n" });
  status = 503;
  expect(await health(here(), "ready")).toEqual({ code: 1, out: "ready: source failed (HTTP 503)\n" });
  expect(asked).toEqual(["/live", "/ready"]);
});

test("nobody answers: not healthy, with the reason", async () => {
  const gone = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("") });
  const { port } = gone;
  await gone.stop(true);
  const { code, out } = await health(listening(`127.0.0.1:${port}`), "live");
  expect(code).toBe(1);
  expect(out).toStartWith("live: ");
  expect(out).toContain(String(port));
});

test("without an address there is nobody to ask: a fault of the configuration", async () => {
  for (const listen of ["off", "127.0.0.1:0"]) {
    const failed = health(listening(listen), "live");
    await expect(failed).rejects.toMatchObject({ code: "config.conflict" });
  }
});
