// Goal: each signal does its own, and one that comes when the run is over changes nothing. Method: a child that signals itself.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { listenToSignals } from "../../src/commands/signals.ts";

const SIGNALS = join(import.meta.dir, "../../src/commands/signals.ts");

/** Runs `body` with `signals` listening and `send` at hand; what it printed, and how it ended. */
async function child(body: string): Promise<string[]> {
  const script = `
    import { listenToSignals } from ${JSON.stringify(SIGNALS)};
    const signals = listenToSignals({ drain: (why) => console.log(why) }, () => console.log("reload"));
    const send = async (signal) => { process.kill(process.pid, signal); await Bun.sleep(20); };
    ${body}
    console.log("done");
    process.exit(0);`;
  const process_ = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "inherit" });
  const lines = (await new Response(process_.stdout).text()).trimEnd().split("\n");
  await process_.exited;
  return [...lines, process_.signalCode === null ? `exit ${process_.exitCode}` : String(process_.signalCode)];
}

test.each(["SIGTERM", "SIGINT"])("%s drains, a second one ends at once", async (signal) => {
  expect(await child(`await send("${signal}");`)).toEqual([`${signal} received`, "done", "exit 0"]);
  expect(await child(`await send("${signal}"); await send("SIGTERM");`)).toEqual([
    `${signal} received`,
    "exit 1",
  ]);
});

test("SIGHUP reloads", async () => {
  expect(await child(`await send("SIGHUP");`)).toEqual(["reload", "done", "exit 0"]);
});

test.each(["SIGTERM", "SIGINT"])(
  "%s after the end changes nothing, however often it comes",
  async (signal) => {
    const body = `signals.close(); await send("${signal}"); await send("${signal}");`;
    expect(await child(body)).toEqual(["done", "exit 0"]);
    expect(await child(`await send("SIGTERM"); ${body}`)).toEqual(["SIGTERM received", "done", "exit 0"]);
  },
);

test("what is heard while it listens, and what after", () => {
  const heard: string[] = [];
  const before = process.listenerCount("SIGHUP");
  const others = { SIGTERM: process.listeners("SIGTERM"), SIGINT: process.listeners("SIGINT") };
  const signals = listenToSignals({ drain: (why) => heard.push(why) }, () => heard.push("reload"));
  process.emit("SIGHUP", "SIGHUP");
  process.emit("SIGINT", "SIGINT");
  signals.close();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.emit(signal, signal);
  expect(heard).toEqual(["reload", "SIGINT received"]);
  expect(process.listenerCount("SIGHUP")).toBe(before);
  // Those of a run stay to its end, which is not the end of this process.
  for (const l of process.listeners("SIGTERM")) if (!others.SIGTERM.includes(l)) process.off("SIGTERM", l);
  for (const l of process.listeners("SIGINT")) if (!others.SIGINT.includes(l)) process.off("SIGINT", l);
});
