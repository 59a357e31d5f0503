/** How long a command takes that does nothing much, beside an empty script of the runtime. */
import { type BenchOptions, type Figure, inTurn, median, ratioOf, round } from "./figure.ts";
import { runProcess } from "./process.ts";

const CONFIG = "examples/quickstart.toml";

export async function* startup(o: BenchOptions): AsyncGenerator<Figure> {
  const rounds = o.small ? 3 : 25;
  const commands: readonly (readonly [string, readonly string[]])[] = [
    ["--version", ["--version"]],
    ["config validate", ["config", "validate", "-c", CONFIG]],
  ];
  for (const [name, args] of commands) {
    const runs = await inTurn(
      rounds,
      () => runProcess([...o.twg, ...args]),
      () => runProcess([process.execPath, "-e", "0"]),
    );
    const ms = (list: readonly { readonly seconds: number }[]) => median(list.map((r) => r.seconds)) * 1000;
    const value = ms(runs.subject);
    const peer = ms(runs.peer);
    yield {
      bench: `startup ${name}`,
      subject: o.twg.join(" ").replace(process.execPath, "bun"),
      peer: "bun -e 0",
      unit: "ms",
      value: round(value),
      peer_value: round(peer),
      ratio: ratioOf(value, peer),
      hash: null,
      n: rounds,
      cpu_per_million: null,
      peer_cpu_per_million: null,
      cpu_ms: round(median(runs.subject.map((r) => r.cpu)) * 1000),
    };
  }
}
