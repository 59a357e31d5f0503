/** For the tests of a `describe` that share a database: each begins with an empty one, and with a sink that may write its stream. */
import { afterEach, beforeAll, beforeEach } from "bun:test";
import type { Authority } from "../../../src/core/ports/coverage.ts";
import { freshDatabase, psql, settings } from "./server.ts";
import { Sink, type SinkOptions } from "./sink.ts";

export class SinkOfEachTest {
  database!: string;
  /** Is closed behind the test, whichever it is by then. */
  sink!: Sink;
  authorities!: readonly Authority[];
  readonly #options: Omit<SinkOptions, "settings">;

  /** To be made within the `describe`, whose hooks it sets. */
  constructor(options: Omit<SinkOptions, "settings">) {
    this.#options = options;
    beforeAll(async () => {
      this.database = await freshDatabase();
    });
    beforeEach(async () => {
      const nothing = "drop schema public cascade; create schema public; drop schema if exists twg cascade";
      await psql(this.database, nothing);
      await this.#begin();
    });
    afterEach(() => this.sink.close());
  }

  /** As after a restart. */
  async again(over: Partial<SinkOptions> = {}): Promise<void> {
    await this.sink.close();
    await this.#begin(over);
  }

  async #begin(over: Partial<SinkOptions> = {}): Promise<void> {
    this.sink = new Sink({ settings: settings(this.database), ...this.#options, ...over });
    await this.sink.prepare();
    this.authorities = await this.sink.claimed();
  }
}
