/** argv -> command -> exit code, nothing else. */
import { type Cli, wantsColour } from "./commands/cli.ts";
import { runCli } from "./commands/program.ts";
import { reportFailure } from "./commands/report.ts";

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
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (e: NodeJS.ErrnoException) => {
    if (stream === process.stdout && e.code !== "EPIPE") process.exit(1);
  });
}

for (const event of ["uncaughtException", "unhandledRejection"] as const) {
  process.on(event, (error: unknown) => {
    reportFailure(error, cli);
    process.exit(1);
  });
}

const code = await runCli(process.argv.slice(2), cli);
// Pipes are written behind our back: what is queued must be out before the process ends.
await Promise.all([process.stdout, process.stderr].map((s) => new Promise((done) => s.write("", done))));
process.exit(code);
