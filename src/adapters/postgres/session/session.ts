/**
 * One connection as a machine over bytes: fed with `opened`, `receive` and `lost`, it writes through `wire` and answers
 * through callbacks. No socket, no clock, no await.
 *
 *   new --opened--> starting (login, parameters) --ready--> idle <--> busy (one exchange) --> ended
 *
 * One exchange at a time: a simple query, a pipeline of statements, or a COPY. It ends with the server's ReadyForQuery,
 * whether it failed or not, so that the next one finds the connection in a known state.
 */
import { asFailure, Failure } from "../../../core/failure/failure.ts";
import { MessageFramer, type ServerMessage } from "../wire/backend.ts";
import { serverFailure } from "../wire/errors.ts";
import * as frontend from "../wire/frontend.ts";
import type { Login } from "./login.ts";

export interface SessionWire {
  write(bytes: Uint8Array): void;
  close(): void;
}

export interface SessionSettings {
  readonly at: string;
  readonly login: Login;
  readonly startup: Readonly<Record<string, string>>;
}

/** Rows of one statement, as text, and its tag ("INSERT 0 3"). */
export interface Result {
  readonly rows: readonly (readonly (string | null)[])[];
  readonly tag: string;
}

export interface Exchange {
  /** Written when the exchange begins. */
  readonly request: Uint8Array;
  /** The server waits for data; only for a COPY. */
  copying?(): void;
  /** What a COPY TO gives, piece by piece, none larger than that. What `take` throws ends the session. */
  readonly out?: { readonly maxBytes: number; take(bytes: Uint8Array): void };
  /** The server is ready again: what the statements gave, or the first error. */
  done(results: readonly Result[]): void;
  failed(failure: Failure): void;
}

type State =
  | { readonly at: "new" }
  | { readonly at: "starting" }
  | { readonly at: "idle" }
  | { readonly at: "busy"; readonly exchange: Exchange }
  | { readonly at: "ended"; readonly failure: Failure };

export interface SessionListener {
  ready(): void;
  /** Once; an exchange under way was failed before. */
  ended(failure: Failure): void;
}

export class PgSession {
  readonly #settings: SessionSettings;
  readonly #wire: SessionWire;
  readonly #listener: SessionListener;
  readonly #framer: MessageFramer;
  #state: State = { at: "new" };
  #results: Result[] = [];
  #rows: (readonly (string | null)[])[] = [];
  #error: Failure | null = null;
  readonly parameters: Map<string, string> = new Map();
  /** What a cancel request names; null until the server told. */
  key: { readonly processId: number; readonly secret: number } | null = null;
  /** I, T or E after the last exchange. */
  transaction = "I";

  constructor(settings: SessionSettings, wire: SessionWire, listener: SessionListener) {
    this.#settings = settings;
    this.#wire = wire;
    this.#listener = listener;
    this.#framer = new MessageFramer(settings.at, (m) => this.#on(m));
  }

  get failure(): Failure | null {
    return this.#state.at === "ended" ? this.#state.failure : null;
  }

  get busy(): boolean {
    return this.#state.at === "busy";
  }

  opened(): void {
    this.#state = { at: "starting" };
    this.#wire.write(frontend.startup(this.#settings.startup));
  }

  receive(chunk: Uint8Array): void {
    if (this.#state.at === "ended") return;
    try {
      this.#framer.push(chunk);
    } catch (e) {
      this.end(asFailure(e));
    }
  }

  /** The connection is gone. `null`: the server closed it in order. */
  lost(error: Error | null): void {
    const { at } = this.#settings;
    const told = this.#error;
    // A server that ends a session says why before it hangs up.
    if (told !== null) return this.end(told);
    const why = error === null ? "the server closed the connection" : error.message;
    this.end(new Failure("postgres.disconnected", why, { at, ...(error === null ? {} : { cause: error }) }));
  }

  begin(exchange: Exchange): void {
    if (this.#state.at === "ended") return exchange.failed(this.#state.failure);
    if (this.#state.at !== "idle") {
      throw new Failure("internal.bug", `an exchange with PostgreSQL begins while ${this.#state.at}`);
    }
    this.#state = { at: "busy", exchange };
    this.#results = [];
    this.#rows = [];
    this.#error = null;
    this.#framer.maxCopyBytes = exchange.out?.maxBytes ?? 0;
    this.#wire.write(exchange.request);
  }

  /** Ends the connection from our side, with the reason for whoever waits. */
  end(failure: Failure): void {
    const state = this.#state;
    if (state.at === "ended") return;
    this.#state = { at: "ended", failure };
    this.#wire.close();
    if (state.at === "busy") state.exchange.failed(failure);
    this.#listener.ended(failure);
  }

  #on(m: ServerMessage): void {
    const state = this.#state;
    if (state.at === "ended") return;
    if (m.t === "parameter") this.parameters.set(m.name, m.value);
    else if (m.t === "error") this.#onError(serverFailure(m.notice, this.#settings.at), m.notice.severity);
    else if (state.at === "starting") this.#onStarting(m);
    else if (state.at === "busy") this.#onBusy(m, state.exchange);
    // Idle: notices, and what a server sends unasked.
  }

  #onError(failure: Failure, severity: string): void {
    this.#error ??= failure;
    // During the start-up there is nothing to go back to; FATAL and PANIC end the session anyway.
    if (this.#state.at !== "busy" || severity === "FATAL" || severity === "PANIC") this.end(this.#error);
  }

  #onStarting(m: ServerMessage): void {
    switch (m.t) {
      case "authentication": {
        const answer = this.#settings.login.answer(m.auth);
        if (answer !== null) this.#wire.write(answer);
        return;
      }
      case "key":
        this.key = { processId: m.processId, secret: m.secret };
        return;
      case "ready":
        this.transaction = m.status;
        this.#state = { at: "idle" };
        this.#listener.ready();
        return;
      default:
        return;
    }
  }

  #onBusy(m: ServerMessage, exchange: Exchange): void {
    switch (m.t) {
      case "row":
        this.#rows.push(m.values);
        return;
      case "complete":
        this.#results.push({ rows: this.#rows, tag: m.tag });
        this.#rows = [];
        return;
      case "copy_in":
        if (exchange.copying === undefined) {
          throw new Failure("internal.bug", "a statement that is no COPY asks for data");
        }
        return exchange.copying();
      case "copy_data":
        if (exchange.out === undefined)
          throw new Failure("internal.bug", "a statement that is no COPY gives data");
        return exchange.out.take(m.bytes);
      case "ready":
        this.transaction = m.status;
        this.#state = { at: "idle" };
        if (this.#error === null) exchange.done(this.#results);
        else exchange.failed(this.#error);
        return;
      default:
        return;
    }
  }
}
