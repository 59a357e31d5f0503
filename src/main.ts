/** argv -> command -> exit code, nothing else. */
import { setImmediate } from "node:timers/promises";
import { type Cli, wantsColour } from "./commands/cli.ts";
import { runCli } from "./commands/program.ts";
import { reportFailure } from "./commands/report.ts";
import { Failure } from "./core/failure/failure.ts";

const cli: Cli = {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  environment: process.env,
  outColour: wantsColour(process.stdout.isTTY === true, process.env),
  errColour: wantsColour(process.stderr.isTTY === true, process.env),
  errIsTerminal: process.stderr.isTTY === true,
};

// A reader that has seen enough (`twg ... | head`) is no failure, and a lost log reader must not stop a pipeline;
// results that a full disk swallowed are one.
let unwritten: Failure | null = null;
process.stderr.on("error", () => {});
process.stdout.on("error", (e: NodeJS.ErrnoException) => {
  if (e.code === "EPIPE") return;
  unwritten ??= new Failure("cli.output", `what was to be printed is cut short: ${e.message}`, { cause: e });
});

for (const event of ["uncaughtException", "unhandledRejection"] as const) {
  process.on(event, (error: unknown) => {
    reportFailure(error, cli);
    process.exit(1);
  });
}

const code = await runCli(process.argv.slice(2), cli);
// Pipes are written behind our back: what is queued must be out before the process ends.
const flushed = () =>
  Promise.all([process.stdout, process.stderr].map((s) => new Promise((done) => s.write("", done))));
await flushed();
// A write that failed is told a turn after the one that follows it has come back.
await setImmediate();
if (unwritten === null) process.exit(code);
const told = reportFailure(unwritten, cli);
await flushed();
process.exit(code === 0 ? told : code);
