/**
 * Fuzz target: a connection, and what stands behind it, under damaged answers to every API that the client speaks. A
 * case opens a connection (with or without a login), asks some requests, and answers each with a whole response of its
 * version, often damaged, cut in pieces, sometimes late; answers go on into metadata and group membership. Whatever
 * comes: each request is settled exactly once and with an allowed code, no more memory is taken than allowed, and
 * nothing is left waiting after its time.
 */

import { type Draw, damage, draws, pick } from "../../scripts/fuzz/draws.ts";
import { ASSIGNORS } from "../../src/adapters/kafka/assignors/table.ts";
import { BrokerSession, type LoginStart } from "../../src/adapters/kafka/session/connection.ts";
import { ClassicGroupMember } from "../../src/adapters/kafka/session/group-classic.ts";
import { ConsumerGroupMember } from "../../src/adapters/kafka/session/group-consumer.ts";
import type {
  GroupAnswer,
  GroupListener,
  GroupMachine,
} from "../../src/adapters/kafka/session/group-machine.ts";
import { MetadataState } from "../../src/adapters/kafka/session/metadata-state.ts";
import type { MetadataResponse } from "../../src/adapters/kafka/wire/messages/metadata.ts";
import {
  API_RANGE,
  APIS,
  type ApiName,
  apiName,
  decodeRequestHeader,
  encodeResponse,
} from "../../src/adapters/kafka/wire/protocol.ts";
import { systemSaslCrypto } from "../../src/adapters/system/sasl-crypto.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import type { SaslMachine } from "../../src/core/sasl/mechanism.ts";
import { oauthbearer } from "../../src/core/sasl/oauthbearer.ts";
import { startSasl } from "../../src/core/sasl/start.ts";
import { sampleBody, VARIANTS } from "../adapters/kafka/wire/bodies.ts";

const MAX_RESPONSE_BYTES = 1 << 16;
const TIMEOUT_MS = 1_000;
/** Codes that a broker's answer may come to. */
const ALLOWED = /^(bytes|kafka|sasl)\./;
const NAMES = Object.keys(APIS) as ApiName[];
const LOGINS: readonly ApiName[] = ["ApiVersions", "SaslHandshake", "SaslAuthenticate"];
const ASKED = NAMES.filter((api) => !LOGINS.includes(api));
const ALL_KEYS = NAMES.map((api) => ({ apiKey: APIS[api].key, minVersion: 0, maxVersion: 30 }));

interface Asked {
  readonly api: ApiName;
  settled: number;
  code: string | null;
}

/** Encoded once: making bodies is most of the cost of a case. */
const samples = new Map<string, Uint8Array>();

function sample(api: ApiName, version: number, variant: 0 | 1): Uint8Array {
  const key = `${api}/${version}/${variant}`;
  let found = samples.get(key);
  if (found === undefined) {
    found = encodeResponse(api, version, 0, sampleBody(APIS[api].response, version, variant) as never);
    samples.set(key, found);
  }
  return found.slice();
}

function loginOf(draw: Draw): LoginStart | null {
  const chance = { next: () => draw(1000) / 1000, bytes: (n: number) => new Uint8Array(n).fill(draw(256)) };
  const machine = (): SaslMachine => {
    if (draw(3) === 0) return oauthbearer({ token: "t", extensions: {} });
    const mechanism = pick(draw, ["PLAIN", "SCRAM-SHA-256"] as const);
    return startSasl(mechanism, { username: "u", password: "p" }, systemSaslCrypto, chance);
  };
  return draw(3) === 0 ? (ready) => ready(machine(), 0) : null;
}

/** Answers that let the connection come further than a body of samples would. */
function helpful(api: ApiName, version: number, draw: Draw): Uint8Array | null {
  switch (api) {
    case "ApiVersions":
      return encodeResponse(api, version, 0, { errorCode: 0, apiKeys: ALL_KEYS });
    case "SaslHandshake":
      return encodeResponse(api, version, 0, { errorCode: 0, mechanisms: ["PLAIN"] });
    case "SaslAuthenticate":
      return encodeResponse(api, version, 0, {
        errorCode: 0,
        errorMessage: null,
        authBytes: draw(2) === 0 ? new Uint8Array(0) : new TextEncoder().encode("r=x,s=AAAA,i=4096"),
        sessionLifetimeMs: BigInt(draw(3) * 700),
      });
    default:
      return null;
  }
}

/** The answer to one request, size and all. */
function answerTo(request: Uint8Array, draw: Draw): Uint8Array {
  const header = decodeRequestHeader(request.subarray(4));
  const api = apiName(header.apiKey)!;
  const whole =
    (draw(8) > 0 ? helpful(api, header.version, draw) : null) ??
    sample(api, header.version, pick(draw, VARIANTS));
  new DataView(whole.buffer, whole.byteOffset).setInt32(4, header.correlationId);
  if (draw(LOGINS.includes(api) ? 8 : 2) === 0) return whole;
  // Mostly the body: a damaged size or id ends the connection at once.
  if (draw(4) === 0) return damage(whole, draw);
  const body = damage(whole.subarray(8), draw);
  const out = new Uint8Array(8 + body.length);
  out.set(whole.subarray(0, 8));
  out.set(body, 8);
  new DataView(out.buffer).setInt32(0, 4 + body.length);
  return out;
}

const nobody: GroupListener = {
  ask() {},
  coordinatorLost() {},
  count() {},
  wantMetadata() {},
  assigned() {},
  revoke() {},
  lost() {},
  confirmed() {},
  told() {},
  ended() {},
};

const GROUP_APIS: readonly ApiName[] = [
  "JoinGroup",
  "SyncGroup",
  "Heartbeat",
  "LeaveGroup",
  "ConsumerGroupHeartbeat",
];

/** A member that is fed whatever was decoded, as an answer to its last request of that kind. */
class Member {
  readonly #machine: GroupMachine;
  readonly #asks = new Map<ApiName, number>();
  #now = 0;

  constructor(classic: boolean, draw: Draw) {
    const listener: GroupListener = { ...nobody, ask: (id, call) => void this.#asks.set(call.api, id) };
    const options = {
      group: "g",
      instanceId: null,
      topics: ["orders"],
      rackId: null,
      sessionTimeoutMs: 6_000,
      heartbeatIntervalMs: 1_000,
      rebalanceTimeoutMs: 10_000,
      pauses: { next: () => 100, reset() {} },
    };
    this.#machine = classic
      ? new ClassicGroupMember({ ...options, assignors: [pick(draw, Object.values(ASSIGNORS))] }, listener)
      : new ConsumerGroupMember({ ...options, memberId: "m", serverAssignor: null }, listener);
    this.#machine.start(0);
  }

  feed(answer: GroupAnswer): void {
    const id = this.#asks.get(answer.api);
    if (id !== undefined) this.#machine.answered(id, answer, this.#now);
    this.#machine.counted(new Map([["orders", 3]]), new Map(), this.#now);
    this.#now += 1_000;
    this.#machine.tick(this.#now);
    this.#machine.released(this.#now);
  }
}

class Case {
  readonly #draw: Draw;
  readonly #session: BrokerSession;
  readonly #written: Uint8Array[] = [];
  readonly #asked: Asked[] = [];
  readonly #metadata = new MetadataState();
  readonly #members: readonly Member[];
  #now = 0;
  #ended = 0;
  #taken = 0;
  #reports = 0;
  #sent = 0;

  constructor(draw: Draw) {
    this.#draw = draw;
    this.#members = [new Member(true, draw), new Member(false, draw)];
    const sasl = loginOf(draw);
    this.#session = new BrokerSession(
      {
        at: "b:1",
        clientId: "t",
        softwareName: "twg",
        softwareVersion: "0",
        sasl: sasl === null ? null : (ready) => sasl((machine) => ready(machine, this.#now)),
        maxResponseBytes: MAX_RESPONSE_BYTES,
        versionsCeiling: pick(draw, [4, 3, 0]),
        requestTimeoutMs: TIMEOUT_MS,
        dialTimeoutMs: TIMEOUT_MS,
        chance: { next: () => draw(1000) / 1000, bytes: (n) => new Uint8Array(n) },
      },
      {
        write: (bytes) => {
          this.#sent++;
          this.#written.push(bytes);
        },
        close() {},
      },
      {
        ready() {},
        done: ({ ms, receivedBytes }) => {
          this.#reports++;
          if (ms < 0 || receivedBytes > MAX_RESPONSE_BYTES + 4) throw new Error("a report without sense");
        },
        ended: (failure) => {
          this.#ended++;
          allowed(failure);
        },
      },
    );
  }

  /** True if anything was refused. */
  run(): boolean {
    this.#session.opened(0);
    for (let n = 1 + this.#draw(4); n > 0; n--) this.#ask(pick(this.#draw, ASKED));
    for (let rounds = 0; rounds < 24 && this.#written.length > 0; rounds++)
      this.#answer(this.#written.shift()!);
    // A throttle or a login that is due may hold requests back for up to five minutes; the rest is the time-out.
    for (let late = 0; late < 3; late++) {
      this.#now += 400_000;
      this.#session.tick(this.#now);
    }
    if (this.#session.failure === null) this.#session.lost(null, this.#now);
    this.#judge();
    return this.#asked.some((a) => a.code !== null);
  }

  #ask(api: ApiName): void {
    const asked: Asked = { api, settled: 0, code: null };
    this.#asked.push(asked);
    const { min, max } = API_RANGE[api];
    const version = min + this.#draw(max - min + 1);
    const memory = {
      take: (size: number) => {
        if (size > MAX_RESPONSE_BYTES) throw new Error(`${size} bytes were taken for a response`);
        this.#taken++;
        return new Uint8Array(size);
      },
      give: () => {
        this.#taken--;
      },
    };
    const call = {
      api,
      version,
      body: sampleBody(APIS[api].request, version, 0) as never,
      timeoutMs: TIMEOUT_MS,
      memory: this.#draw(2) === 0 ? memory : null,
      wanted: () => true,
      answered: (body: never) => {
        asked.settled++;
        this.#use(api, version, body);
      },
      failed: (failure: Failure) => {
        asked.settled++;
        asked.code = failure.code;
        allowed(failure);
      },
    };
    this.#session.send(call, this.#now);
  }

  #answer(request: Uint8Array): void {
    const bytes = answerTo(request, this.#draw);
    this.#now += this.#draw(10) === 0 ? 600 : 1;
    if (this.#draw(10) === 0) this.#session.tick(this.#now);
    for (let at = 0; at < bytes.length; ) {
      const size = this.#draw(4) === 0 ? 1 + this.#draw(7) : bytes.length - at;
      this.#session.receive(bytes.slice(at, at + size), this.#now);
      at += size;
    }
  }

  /** What the client makes of a body. */
  #use(api: ApiName, version: number, body: never): void {
    if (api === "Metadata") this.#metadata.apply(body as MetadataResponse);
    if (!GROUP_APIS.includes(api)) return;
    for (const member of this.#members) member.feed({ api, version, body } as unknown as GroupAnswer);
  }

  #judge(): void {
    if (this.#ended !== 1) throw new Error(`the connection ended ${this.#ended} times`);
    for (const { api, settled } of this.#asked)
      if (settled !== 1) throw new Error(`${api} was settled ${settled} times`);
    if (this.#reports !== this.#sent) throw new Error(`${this.#reports} reports of ${this.#sent} requests`);
    if (this.#taken < 0) throw new Error("memory was given back twice");
  }
}

function allowed(failure: Failure): void {
  if (!(failure instanceof Failure) || !ALLOWED.test(failure.code)) throw failure;
}

/** Runs case `n`. Throws what must not happen; returns whether anything was refused. */
export function fuzzSession(n: number): boolean {
  return new Case(draws(n)).run();
}
