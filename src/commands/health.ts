/** `twg health`: what a container's health check runs, where there is no shell and no curl. */
import { ask } from "../adapters/telemetry/ask.ts";
import { parseHostPort } from "../core/config/option-types.ts";
import { LISTEN_OFF } from "../core/config/sections.ts";
import { Failure, failureLine } from "../core/failure/failure.ts";
import type { Cli } from "./cli.ts";
import { loadConfig, resolveObservability } from "./config-file.ts";
import { printable } from "./style.ts";

export interface HealthOptions {
  readonly config: string;
  readonly probe: "live" | "ready";
  /** ms. */
  readonly timeout: number;
}

/** Exit 0: yes. 1: no, or nobody answers. Throws the configuration's Failure (2). */
export async function runHealth(options: HealthOptions, cli: Cli): Promise<number> {
  const config = await loadConfig(options.config);
  const { listen } = config.observability;
  if (listen === LISTEN_OFF || parseHostPort(listen)?.port === 0) {
    throw new Failure("config.conflict", `observability.listen is "${listen}": there is nobody to ask`, {
      at: options.config,
      hint: 'Set it to an address with a port, such as "127.0.0.1:9464"',
    });
  }
  const { tls, token } = await resolveObservability(config, cli.environment);
  try {
    const { status, body } = await ask({
      listen,
      cert: tls?.cert.reveal() ?? null,
      token: token?.reveal() ?? null,
      path: `/${options.probe}`,
      timeoutMs: options.timeout,
    });
    cli.out(`${options.probe}: ${printable(body)} (HTTP ${status})\n`);
    return status === 200 ? 0 : 1;
  } catch (e) {
    if (!(e instanceof Failure)) throw e;
    cli.out(`${options.probe}: ${printable(failureLine(e))}\n`);
    return 1;
  }
}
