/**
 * One connection to a broker as a machine over bytes and time: feed it `opened`, `receive`, `lost` and `tick`, it
 * writes through `wire` and answers requests through their callbacks. No socket, no clock, no await.
 *
 *   new --opened--> versions --> [credentials --> handshake --> authenticate --> ...] --> ready --> ended
 *                                      ^--------------- session lifetime (KIP-368) -------'
 *
 * Responses come in the order of the requests, so requests in flight are a queue; a wrong correlation id, a response
 * nobody asked for or one that can't be read ends the connection, as does the time-out of any request.
 */
import { ByteWriter } from "../../../core/bytes/writer.ts";
import { asFailure, Failure } from "../../../core/failure/failure.ts";
import type { SaslMachine } from "../../../core/sasl/mechanism.ts";
import type { Chance } from "../../../core/time/chance.ts";
import {
  type ApiName,
  correlationIdOf,
  type Draft,
  decodeResponse,
  encodeRequest,
  type RequestOf,
  type ResponseOf,
} from "../wire/protocol.ts";
import { ResponseFramer } from "./framing.ts";
import { hungUp, tooLate, unreadable } from "./hang-up.ts";
import { LoginTerm } from "./login-term.ts";
import type { RequestReport } from "./request-report.ts";
import { authRefused, mechanismRefused, refusalOf } from "./sasl-failure.ts";
import { type BrokerVersions, chooseVersion, judgeVersions } from "./versions.ts";

export interface ConnectionWire {
  write(bytes: Uint8Array): void;
  close(): void;
}

/** Memory of a response's own, for responses whose buffer travels on. */
export interface ResponseMemory {
  /** Exactly `size` bytes at the start of their buffer. */
  take(size: number): Uint8Array;
  /** Of a response that nobody will read. */
  give(memory: Uint8Array): void;
}

/**
 * Asked for a fresh machine at each login; it calls `ready` once, at once or when its token is there, with the
 * monotonic time of the call. `ready` may come after the connection ended.
 */
export type LoginStart = (ready: (machine: SaslMachine | Failure, now: number) => void) => void;

export interface ConnectionSettings {
  /** `host:port`, for messages. */
  readonly at: string;
  readonly clientId: string;
  readonly softwareName: string;
  readonly softwareVersion: string;
  /** Null: the listener wants no login. */
  readonly sasl: LoginStart | null;
  readonly maxResponseBytes: number;
  /** ApiVersions is asked in at most this version: some brokers reset the connection on a newer one. */
  readonly versionsCeiling: number;
  readonly requestTimeoutMs: number;
  /** For the first answer: what a port that accepts and then stays silent gets. */
  readonly dialTimeoutMs: number;
  readonly chance: Chance;
}

export interface ConnectionListener {
  ready(): void;
  /** Of every request, the connection's own included. */
  done(report: RequestReport): void;
  /** Once, after all requests were answered with the failure. */
  ended(failure: Failure): void;
}

export interface Call<A extends ApiName> {
  readonly api: A;
  readonly version: number;
  readonly body: Draft<RequestOf<A>>;
  readonly timeoutMs: number;
  readonly memory: ResponseMemory | null;
  /** False: its caller gave up before it was sent, so it need not be. */
  wanted(): boolean;
  /** `bytes` is the response after its size, at the start of its buffer. */
  answered(body: ResponseOf<A>, bytes: Uint8Array): void;
  failed(failure: Failure): void;
  /** There for a request that brokers do not answer (acks 0): it was given to the connection. */
  written?(): void;
}

type Sent = Pick<InFlight, "api" | "sentAt" | "sentBytes">;

interface InFlight {
  readonly api: ApiName;
  readonly sentAt: number;
  readonly sentBytes: number;
  readonly correlationId: number;
  deadline: number;
  readonly memory: ResponseMemory | null;
  receive(bytes: Uint8Array): number;
  failed(failure: Failure): void;
}

interface Parked {
  write(): void;
  wanted(): boolean;
  failed(failure: Failure): void;
}

type State =
  | { readonly at: "new" }
  | { readonly at: "versions"; readonly version: number }
  /** `machine` null: its credentials are still being fetched. */
  | { readonly at: "authenticating"; readonly machine: SaslMachine | null }
  | { readonly at: "ready" }
  | { readonly at: "ended"; readonly failure: Failure };

/** A broker may ask for any throttle; more than this is taken for a mistake. */
const MAX_THROTTLE_MS = 300_000;

/** An int32 on the wire: wraps to 0, never to a negative one. */
export function nextCorrelationId(id: number): number {
  return (id + 1) & 0x7fffffff;
}

export class BrokerSession {
  readonly #settings: ConnectionSettings;
  readonly #wire: ConnectionWire;
  readonly #listener: ConnectionListener;
  readonly #framer: ResponseFramer;
  readonly #out = new ByteWriter();
  #state: State = { at: "new" };
  #now = 0;
  #correlationId = 0;
  #inFlight: InFlight[] = [];
  #waiting: Parked[] = [];
  #versions: BrokerVersions = new Map();
  #mutedUntil = 0;
  readonly #term: LoginTerm;
  #answers = 0;

  constructor(settings: ConnectionSettings, wire: ConnectionWire, listener: ConnectionListener) {
    this.#settings = settings;
    this.#wire = wire;
    this.#listener = listener;
    this.#term = new LoginTerm(settings.chance);
    const receiver = {
      memory: (n: number) => this.#memory(n),
      response: (b: Uint8Array) => this.#response(b),
    };
    this.#framer = new ResponseFramer(receiver, settings.maxResponseBytes, settings.at);
  }

  get failure(): Failure | null {
    return this.#state.at === "ended" ? this.#state.failure : null;
  }

  /** The broker has told its versions: whatever ends the connection now, it was not our ApiVersions request. */
  get negotiated(): boolean {
    return this.#versions.size > 0;
  }

  /** Requests sent or parked. */
  get load(): number {
    return this.#inFlight.length + this.#waiting.length;
  }

  /** Throws kafka.unsupported_version. Only once ready. */
  version(api: ApiName, ceiling?: number): number {
    return chooseVersion(api, this.#versions, this.#settings.at, ceiling);
  }

  /** Monotonic time at which `tick` is wanted, null: not before something else happens. */
  get wakeAt(): number | null {
    let at = Number.POSITIVE_INFINITY;
    for (const call of this.#inFlight) at = Math.min(at, call.deadline);
    if (this.#waiting.length > 0 && this.#state.at === "ready") {
      if (this.#mutedUntil > this.#now) at = Math.min(at, this.#mutedUntil);
      else if (this.#term.state(this.#now) === "over") at = Math.min(at, this.#term.dueAt);
    }
    return at === Number.POSITIVE_INFINITY ? null : at;
  }

  opened(now: number): void {
    this.#now = now;
    this.#askVersions(this.#settings.versionsCeiling);
  }

  receive(chunk: Uint8Array, now: number): void {
    this.#take(now, () => this.#framer.push(chunk));
  }

  /** Where the next bytes belong, null if that is not known yet; `placed` says how many were written there. */
  get space(): Uint8Array | null {
    return this.#state.at === "ended" ? null : this.#framer.space;
  }

  placed(bytes: number, now: number): void {
    this.#take(now, () => this.#framer.placed(bytes));
  }

  #take(now: number, read: () => void): void {
    this.#now = now;
    if (this.#state.at === "ended") return;
    try {
      read();
    } catch (e) {
      this.#end(unreadable(e, this.#settings.at));
    }
  }

  /** The socket is gone; null: the peer closed it in order. */
  lost(error: Failure | null, now: number): void {
    this.#now = now;
    if (error !== null) this.#end(error);
    else this.#end(this.#hungUp());
  }

  tick(now: number): void {
    this.#now = now;
    const late = this.#inFlight.find((call) => call.deadline <= now);
    if (late !== undefined) {
      const { at, dialTimeoutMs } = this.#settings;
      this.#end(tooLate(at, late.api, this.#state.at === "versions" ? dialTimeoutMs : null));
      return;
    }
    this.#pump();
  }

  /** Gives the connection up: requests fail with `failure`. */
  close(failure: Failure): void {
    this.#end(failure);
  }

  send<A extends ApiName>(call: Call<A>, now: number): void {
    this.#now = now;
    if (this.#state.at === "ended") {
      call.failed(this.#state.failure);
      return;
    }
    this.#waiting.push({ write: () => this.#write(call), wanted: call.wanted, failed: call.failed });
    this.#pump();
  }

  #pump(): void {
    while (this.#state.at === "ready" && this.#waiting.length > 0) {
      if (this.#now < this.#mutedUntil) return;
      const term = this.#term.state(this.#now);
      if (term !== "good") {
        // Nothing else may be under way while authenticating: wait until the last answer is here.
        if (term === "due" && this.#inFlight.length === 0) this.#login();
        return;
      }
      const next = this.#waiting.shift()!;
      if (!next.wanted()) continue;
      this.#term.used();
      next.write();
    }
  }

  #write<A extends ApiName>(call: Call<A>): void {
    const { api, version } = call;
    const correlationId = this.#correlationId;
    this.#correlationId = nextCorrelationId(correlationId);
    let bytes: Uint8Array;
    try {
      bytes = encodeRequest(api, version, correlationId, this.#settings.clientId, call.body, this.#out);
    } catch (e) {
      call.failed(asFailure(e));
      return;
    }
    if (call.written !== undefined) {
      this.#wire.write(bytes);
      this.#report({ api, sentAt: this.#now, sentBytes: bytes.length }, 0, null);
      return call.written();
    }
    this.#inFlight.push({
      api,
      correlationId,
      deadline: this.#now + call.timeoutMs,
      sentAt: this.#now,
      sentBytes: bytes.length,
      memory: call.memory,
      receive(response) {
        const body = decodeResponse(api, version, response);
        call.answered(body, response);
        return throttleOf(body);
      },
      failed: call.failed,
    });
    this.#wire.write(bytes);
  }

  #memory(size: number): Uint8Array {
    const head = this.#inFlight[0];
    if (head === undefined) throw this.#invalid("a response that nobody asked for");
    return head.memory === null ? new Uint8Array(size) : head.memory.take(size);
  }

  #response(bytes: Uint8Array): void {
    const head = this.#inFlight[0]!;
    const id = correlationIdOf(bytes);
    let throttle = 0;
    try {
      if (id !== head.correlationId)
        throw this.#invalid(`correlation id ${id}, expected ${head.correlationId}`);
      this.#inFlight.shift();
      this.#answers++;
      throttle = head.receive(bytes);
      this.#report(head, 4 + bytes.length, null);
    } catch (e) {
      head.memory?.give(bytes);
      if (this.#inFlight[0] !== head) {
        const failure = unreadable(e, this.#settings.at);
        this.#report(head, 4 + bytes.length, failure.code);
        head.failed(failure);
      }
      throw e;
    }
    if (throttle > 0) this.#mute(Math.min(throttle, MAX_THROTTLE_MS));
    this.#pump();
  }

  #report({ api, sentAt, sentBytes }: Sent, receivedBytes: number, error: string | null): void {
    this.#listener.done({ api, ms: this.#now - sentAt, sentBytes, receivedBytes, error });
  }

  /** The broker has muted the channel and reads nothing until then (KIP-219): that time is no request's fault. */
  #mute(ms: number): void {
    this.#mutedUntil = this.#now + ms;
    for (const call of this.#inFlight) call.deadline += ms;
  }

  #internalCall<A extends ApiName>(
    api: A,
    version: number,
    body: Draft<RequestOf<A>>,
    answered: (body: ResponseOf<A>) => void,
    timeoutMs: number = this.#settings.requestTimeoutMs,
  ): void {
    const nobody = { wanted: () => true, failed: () => {} };
    this.#write({ api, version, body, timeoutMs, memory: null, answered, ...nobody });
  }

  #askVersions(version: number): void {
    this.#state = { at: "versions", version };
    const { softwareName, softwareVersion, at } = this.#settings;
    const body = { clientSoftwareName: softwareName, clientSoftwareVersion: softwareVersion };
    const { requestTimeoutMs, dialTimeoutMs } = this.#settings;
    const answered = (response: ResponseOf<"ApiVersions">) => {
      const verdict = judgeVersions(response.errorCode, response.apiKeys, version);
      if (verdict.kind === "again") {
        this.#askVersions(verdict.version);
      } else if (verdict.kind === "use") {
        this.#versions = verdict.versions;
        if (this.#settings.sasl === null) this.#becomeReady();
        else this.#login();
      } else {
        const text = `${at} refuses ApiVersions ${version} with error ${response.errorCode}`;
        throw new Failure("kafka.unsupported_version", text, { at });
      }
    };
    this.#internalCall("ApiVersions", version, body, answered, Math.min(requestTimeoutMs, dialTimeoutMs));
  }

  #login(): void {
    const { sasl, at } = this.#settings;
    const asked: State = { at: "authenticating", machine: null };
    this.#state = asked;
    sasl?.((machine, now) => {
      // It ended meanwhile.
      if (this.#state !== asked) return;
      this.#take(now, () => {
        if (machine instanceof Failure) throw machine;
        this.#handshake(machine, at);
      });
    });
  }

  #handshake(machine: SaslMachine, at: string): void {
    this.#state = { at: "authenticating", machine };
    const version = chooseVersion("SaslHandshake", this.#versions, at);
    this.#internalCall("SaslHandshake", version, { mechanism: machine.mechanism }, (response) => {
      if (response.errorCode !== 0) throw mechanismRefused(response, machine.mechanism, at);
      this.#authenticate(machine, null, 0n);
    });
  }

  #authenticate(machine: SaslMachine, server: Uint8Array | null, lifetimeMs: bigint): void {
    const { at } = this.#settings;
    let step: ReturnType<SaslMachine["step"]>;
    try {
      step = machine.step(server);
    } catch (e) {
      throw authRefused(asFailure(e), machine.mechanism, at);
    }
    if (step.kind === "done") {
      this.#authenticated(Number(lifetimeMs));
      return;
    }
    const version = chooseVersion("SaslAuthenticate", this.#versions, at);
    this.#internalCall("SaslAuthenticate", version, { authBytes: step.message }, (response) => {
      if (response.errorCode !== 0) {
        throw authRefused(refusalOf(response, machine), machine.mechanism, at);
      }
      this.#authenticate(machine, response.authBytes, response.sessionLifetimeMs);
    });
  }

  #authenticated(lifetimeMs: number): void {
    this.#term.begin(lifetimeMs, this.#now);
    this.#becomeReady();
  }

  #becomeReady(): void {
    this.#state = { at: "ready" };
    this.#listener.ready();
    this.#pump();
  }

  #invalid(what: string): Failure {
    const { at } = this.#settings;
    return new Failure("kafka.response_invalid", `${at} sent ${what}`, { at });
  }

  #hungUp(): Failure {
    const { at, sasl } = this.#settings;
    const mute = sasl === null && this.#answers <= 1 && this.#inFlight.length > 0;
    const { at: phase } = this.#state;
    const during = phase === "versions" ? "negotiation" : phase === "authenticating" ? "login" : "requests";
    return hungUp({ at, during, mute });
  }

  #end(failure: Failure): void {
    if (this.#state.at === "ended") return;
    this.#state = { at: "ended", failure };
    const cut = this.#framer.abandon();
    if (cut !== null) this.#inFlight[0]?.memory?.give(cut);
    this.#wire.close();
    for (const call of this.#inFlight) this.#report(call, 0, failure.code);
    const failing = [...this.#inFlight, ...this.#waiting];
    this.#inFlight = [];
    this.#waiting = [];
    for (const call of failing) call.failed(failure);
    this.#listener.ended(failure);
  }
}

function throttleOf(body: object): number {
  return "throttleTimeMs" in body && typeof body.throttleTimeMs === "number" ? body.throttleTimeMs : 0;
}
