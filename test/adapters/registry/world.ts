/** Clients beside registries of the tests' own: time goes on by itself while something is waited for. */
import { RegistryClient } from "../../../src/adapters/registry/client.ts";
import type { RegistrySettings } from "../../../src/adapters/registry/settings.ts";
import { asFailure, type Failure } from "../../../src/core/failure/failure.ts";
import { ManualClock } from "../../brokers/kafka/manual-clock.ts";
import { RegistryServer, type RegistryServerOptions } from "../../brokers/registry/server.ts";

const STEP_MS = 20;

/** Small and without patience. */
export const SETTINGS: RegistrySettings = {
  urls: [],
  login: { by: "nothing" },
  headers: {},
  tls: null,
  timeoutMs: 10_000,
  attempts: 3,
  maxSchemaBytes: 1 << 20,
  cacheBytes: 4 << 20,
  refreshMs: 60_000,
  missingGraceMs: 0,
  missingTtlMs: 30_000,
  section: "decode.registry",
};

export class RegistryWorld {
  readonly clock = new ManualClock();
  readonly #closing: (() => Promise<void> | void)[] = [];

  server(options: RegistryServerOptions = {}): RegistryServer {
    const server = new RegistryServer(options);
    this.#closing.push(() => server.close());
    return server;
  }

  client(urls: string | readonly string[], more: Partial<RegistrySettings> = {}): RegistryClient {
    const client = new RegistryClient(
      {
        ...SETTINGS,
        urls: typeof urls === "string" ? [urls] : urls,
        ...more,
      },
      { clock: this.clock, chance: { next: () => 0.5, bytes: (n) => new Uint8Array(n) } },
    );
    this.#closing.push(() => client.close());
    return client;
  }

  /** For what else has to be closed. */
  also<T extends { close(): Promise<void> | void }>(part: T): T {
    this.#closing.push(() => part.close());
    return part;
  }

  /** What comes of it, while pauses and time-outs pass quickly. */
  async of<T>(promise: Promise<T>): Promise<T> {
    let over = false;
    const end = promise.finally(() => {
      over = true;
    });
    end.catch(() => {});
    while (!over) {
      await Bun.sleep(1);
      if (!over) this.clock.advance(STEP_MS);
    }
    return await end;
  }

  async failure(promise: Promise<unknown>): Promise<Failure> {
    return await this.of(
      promise.then(
        () => Promise.reject(new Error("it did not fail")),
        (e: unknown) => asFailure(e),
      ),
    );
  }

  async close(): Promise<void> {
    for (const close of this.#closing.splice(0)) await close();
  }
}

export const ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}';
export const avro = (schema: string = ORDER) => ({ schema, schemaType: "AVRO", references: [] });
