/**
 * A Kafka client: what is known of the cluster, and connections to its brokers by purpose. A long poll holds up
 * everything behind it on its connection, so fetches have connections of their own, one per broker and lane.
 *
 * What several callers share (opening a connection, a metadata refresh, finding the coordinator) runs under the
 * client's own signal: a caller that gives up leaves, the work goes on for the others.
 */
import { asFailure, Failure } from "../../core/failure/failure.ts";
import type { Net, TlsOptions } from "../../core/ports/net.ts";
import type { Observer } from "../../core/ports/observer.ts";
import type { SaslCrypto } from "../../core/sasl/mechanism.ts";
import type { Chance } from "../../core/time/chance.ts";
import { type Clock, sleep } from "../../core/time/clock.ts";
import { type Answer, BrokerLink, cancelled, type LinkSettings } from "./client-link.ts";
import { brokerFailure } from "./client-retry.ts";
import { type Login, type SaslSettings, startLogin } from "./login/login.ts";
import type { LoginStart } from "./session/connection.ts";
import {
  askedTopics,
  type BrokerAddress,
  type MetadataChange,
  MetadataState,
  onlyWanted,
  type TopicsWanted,
} from "./session/metadata-state.ts";
import { ERROR, kafkaError } from "./wire/errors.ts";
import { API_RANGE, type ApiName, type Draft, type RequestOf } from "./wire/protocol.ts";

export interface ClientOptions {
  readonly bootstrap: readonly BrokerAddress[];
  readonly clientId: string;
  readonly version: string;
  readonly tls: TlsOptions | null;
  readonly sasl: SaslSettings | null;
  readonly dialTimeoutMs: number;
  readonly requestTimeoutMs: number;
  /** Guards memory; far above the fetch limits, which a first batch may exceed. */
  readonly maxResponseBytes: number;
}

export interface ClientParts {
  readonly net: Net;
  readonly clock: Clock;
  readonly chance: Chance;
  readonly crypto: SaslCrypto;
  /** Told of connections and requests. */
  readonly observer?: Observer;
}

/** Cloud load balancers drop a silent connection after 240 s without a word; brokers close after 10 minutes. */
const MAX_IDLE_MS = 180_000;
/** The purpose of every connection that is not for fetching. */
export const CONTROL = "control";

export type CoordinatorKind = "group" | "transaction";

/** Owner of connections to addresses whose broker is not known. */
const BOOTSTRAP = "bootstrap";

interface Slot {
  readonly address: BrokerAddress;
  readonly opening: Promise<BrokerLink>;
  link: BrokerLink | null;
}

export function placeOf(address: BrokerAddress): string {
  return address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}

export class KafkaClient {
  readonly metadata = new MetadataState();
  #options: ClientOptions;
  #login: Login | null;
  readonly #parts: ClientParts;
  readonly #life = new AbortController();
  readonly #slots = new Map<string, Slot>();
  /** Highest ApiVersions version to ask an address for; lowered when a connection dies of the question. */
  readonly #ceilings = new Map<string, number>();
  readonly #coordinators = new Map<string, Promise<number>>();
  #refreshing: { readonly topics: string; readonly done: Promise<MetadataChange> } | null = null;

  constructor(options: ClientOptions, parts: ClientParts) {
    this.#options = options;
    this.#parts = parts;
    this.#login = options.sasl === null ? null : startLogin(options.sasl, parts);
  }

  /** Aborts when the client is closed. */
  get life(): AbortSignal {
    return this.#life.signal;
  }

  /** Connections that are opened and logins that are renewed from now on use these options; open connections go on. */
  renew(options: ClientOptions): void {
    this.#options = options;
    if (JSON.stringify(options.sasl) === JSON.stringify(this.#login?.settings ?? null)) return;
    this.#login?.close();
    this.#login = options.sasl === null ? null : startLogin(options.sasl, this.#parts);
  }

  close(): void {
    this.#life.abort(cancelled("the Kafka client"));
    for (const slot of this.#slots.values()) slot.link?.close("the client was closed");
    this.#slots.clear();
    this.#login?.close();
  }

  /** The open connection to a broker for a purpose, opened now if need be. */
  async link(broker: number, purpose: string, signal: AbortSignal): Promise<BrokerLink> {
    const address = this.metadata.brokers.get(broker);
    if (address === undefined) {
      throw new Failure("kafka.broker_error", `broker ${broker} is not known`, { retry: true });
    }
    return await this.#open(`${broker}/${purpose}`, address, signal);
  }

  /** Before something is tried again. Rejects when the signal aborts. */
  pause(ms: number, signal: AbortSignal): Promise<void> {
    return sleep(this.#parts.clock, ms, signal);
  }

  /** Gives up the connections of a purpose that ended. */
  release(broker: number, purpose: string): void {
    const key = `${broker}/${purpose}`;
    this.#slots.get(key)?.link?.close("it is not needed any more");
    this.#slots.delete(key);
  }

  /** Asks with the highest version in common and answers with the body. */
  async ask<A extends ApiName>(
    link: BrokerLink,
    api: A,
    body: Draft<RequestOf<A>>,
    signal: AbortSignal,
    ceiling?: number,
  ): Promise<Answer<A>["body"]> {
    return (await link.request(api, link.version(api, ceiling), body, { signal })).body;
  }

  /**
   * Fetches metadata of the topics from whichever broker answers first: those known, then the bootstrap addresses.
   * Rejects with the most telling failure if none does, and with kafka.cluster_changed if it is another cluster.
   */
  refresh(topics: TopicsWanted, signal: AbortSignal): Promise<MetadataChange> {
    const key = "matches" in topics ? `${topics.text} ${topics.also.join(",")}` : topics.join(",");
    if (this.#refreshing === null || this.#refreshing.topics !== key) {
      const done = this.#refresh(topics).finally(() => {
        if (this.#refreshing?.done === done) this.#refreshing = null;
      });
      this.#refreshing = { topics: key, done };
    }
    return until(this.#refreshing.done, signal, "a metadata refresh");
  }

  async #refresh(topics: TopicsWanted): Promise<MetadataChange> {
    let failure: Failure | null = null;
    for (const [key, address] of this.#candidates()) {
      try {
        const link = await this.#open(key, address, this.life);
        const change = await this.#askMetadata(link, topics);
        if (change !== null) return change;
        failure ??= new Failure("kafka.broker_error", `${link.at} knows no brokers yet`, { retry: true });
      } catch (e) {
        const f = asFailure(e);
        if (f.code === "internal.cancelled" || f.code === "kafka.cluster_changed") throw f;
        if (failure === null || (failure.retry && !f.retry)) failure = f;
      }
    }
    throw failure ?? new Failure("internal.bug", "no bootstrap address");
  }

  async #askMetadata(link: BrokerLink, topics: TopicsWanted): Promise<MetadataChange | null> {
    const body = { topics: askedTopics(topics), allowAutoTopicCreation: false };
    const response = await this.ask(link, "Metadata", body, this.life);
    if (response.errorCode !== 0 && kafkaError(response.errorCode).action !== "rebootstrap") {
      throw brokerFailure(response.errorCode, "Metadata", link.at);
    }
    const before = this.metadata.clusterId;
    if (before !== null && response.clusterId !== null && response.clusterId !== before) {
      throw new Failure("kafka.cluster_changed", `${link.at} is of cluster ${response.clusterId}`, {
        at: link.at,
        hint: `What was read so far is of cluster ${before}: positions of one mean nothing in the other`,
      });
    }
    const change = this.metadata.apply(onlyWanted(response, topics));
    return change.applied ? change : null;
  }

  /** Brokers that answered before, other known brokers by chance, then the bootstrap addresses by chance. */
  #candidates(): [key: string, address: BrokerAddress][] {
    const known: [string, BrokerAddress][] = [...this.metadata.brokers].map(([id, a]) => [
      `${id}/${CONTROL}`,
      a,
    ]);
    const isOpen = ([key]: [string, BrokerAddress]) => this.#slots.get(key)?.link?.failure === null;
    const open = known.filter(isOpen);
    const closed = known.filter((k) => !isOpen(k));
    const first = this.#options.bootstrap.map((a): [string, BrokerAddress] => [
      `${BOOTSTRAP}/${placeOf(a)}`,
      a,
    ]);
    return [...this.#shuffled(open), ...this.#shuffled(closed), ...this.#shuffled(first)];
  }

  #shuffled<T>(items: readonly T[]): T[] {
    const out = [...items];
    for (let i = out.length - 1; i > 0; i--) {
      const j = Math.floor(this.#parts.chance.next() * (i + 1));
      [out[i], out[j]] = [out[j]!, out[i]!];
    }
    return out;
  }

  #open(key: string, address: BrokerAddress, signal: AbortSignal): Promise<BrokerLink> {
    const slot = this.#slots.get(key);
    if (slot !== undefined && this.#usable(slot, address)) return until(slot.opening, signal, `a connection`);
    slot?.link?.close("it was idle, or its broker has moved");
    const opening = this.#dial(address, key);
    const fresh: Slot = { address, opening, link: null };
    this.#slots.set(key, fresh);
    opening.then(
      (link) => {
        fresh.link = link;
        // The slot was given up meanwhile: nobody else will ever close this connection.
        if (this.#slots.get(key) !== fresh) link.close("it came too late");
      },
      () => {
        if (this.#slots.get(key) === fresh) this.#slots.delete(key);
      },
    );
    return until(opening, signal, "a connection");
  }

  #usable(slot: Slot, address: BrokerAddress): boolean {
    if (slot.address.host !== address.host || slot.address.port !== address.port) return false;
    if (slot.link === null) return true;
    return slot.link.failure === null && slot.link.idleMs < MAX_IDLE_MS;
  }

  async #dial(address: BrokerAddress, key: string): Promise<BrokerLink> {
    const slash = key.indexOf("/");
    const [owner, purpose] = [key.slice(0, slash), key.slice(slash + 1)];
    const at = placeOf(address);
    const { bootstrap: _, sasl, version, ...rest } = this.#options;
    const { chance } = this.#parts;
    let ceiling = this.#ceilings.get(at) ?? API_RANGE.ApiVersions.max;
    for (;;) {
      const settings: LinkSettings = {
        ...rest,
        address,
        at,
        purpose: owner === BOOTSTRAP ? CONTROL : purpose,
        node: owner === BOOTSTRAP ? null : Number(owner),
        softwareName: "twg",
        softwareVersion: version,
        versionsCeiling: ceiling,
        chance,
        sasl: sasl === null ? null : (ready) => this.#logIn(address.host, ready),
      };
      const opened = await BrokerLink.open(this.#parts, settings, this.life);
      if ("link" in opened) return opened.link;
      if (opened.negotiated) throw opened.failure;
      const lower = lowerCeiling(ceiling);
      this.#ceilings.set(at, lower);
      // Some brokers hang up on a version that they do not know: they are asked again at once, by a lower one.
      if (opened.failure.code !== "kafka.disconnected" || lower > ceiling) throw opened.failure;
      ceiling = lower;
    }
  }

  /** By the login of now, which may be another than when the connection was opened. */
  #logIn(host: string, ready: Parameters<LoginStart>[0]): void {
    const { clock } = this.#parts;
    const failed = (e: unknown) => ready(asFailure(e), clock.monotonic());
    try {
      if (this.#login === null) throw new Failure("kafka.auth_failed", "the login was taken away");
      const machine = this.#login.machine(host);
      if (!(machine instanceof Promise)) ready(machine, clock.monotonic());
      else machine.then((m) => ready(m, clock.monotonic()), failed);
    } catch (e) {
      failed(e);
    }
  }

  /**
   * Broker id of the coordinator of a group, or of a transactional id. `forget` it when a broker says that it is not, or
   * cannot be reached.
   */
  coordinator(key: string, signal: AbortSignal, kind: CoordinatorKind = "group"): Promise<number> {
    const slot = `${kind} ${key}`;
    let found = this.#coordinators.get(slot);
    if (found === undefined) {
      found = this.#findCoordinator(key, kind);
      this.#coordinators.set(slot, found);
      found.catch(() => this.forgetCoordinator(key, kind));
    }
    return until(found, signal, "finding the coordinator");
  }

  forgetCoordinator(key: string, kind: CoordinatorKind = "group"): void {
    this.#coordinators.delete(`${kind} ${key}`);
  }

  async #findCoordinator(name: string, kind: CoordinatorKind): Promise<number> {
    let failure: Failure | null = null;
    for (const [key, address] of this.#candidates()) {
      let link: BrokerLink;
      try {
        link = await this.#open(key, address, this.life);
      } catch (e) {
        failure ??= asFailure(e);
        continue;
      }
      const response = await this.ask(link, "FindCoordinator", findKey(name, kind), this.life);
      const found = response.coordinators[0] ?? response;
      if (found.errorCode !== ERROR.NONE) {
        throw brokerFailure(found.errorCode, `FindCoordinator of ${kind} ${name}`, link.at);
      }
      if (!this.metadata.brokers.has(found.nodeId)) {
        this.metadata.brokers.set(found.nodeId, { host: found.host, port: found.port });
      }
      return found.nodeId;
    }
    throw failure ?? new Failure("internal.bug", "no bootstrap address");
  }
}

/** Both shapes: one key up to v3, a list from v4 on. */
function findKey(key: string, kind: CoordinatorKind): Draft<RequestOf<"FindCoordinator">> {
  return { key, keyType: kind === "group" ? 0 : 1, coordinatorKeys: [key] };
}

/** 4, 3, 0 and round again: an outage looks the same as a broker that dies of the question. */
function lowerCeiling(ceiling: number): number {
  if (ceiling > 3) return 3;
  return ceiling > 0 ? 0 : API_RANGE.ApiVersions.max;
}

/** The shared promise, for one caller: its abort leaves the work alone. */
export function until<T>(shared: Promise<T>, signal: AbortSignal, what: string): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      shared.catch(() => {});
      reject(cancelled(what));
      return;
    }
    const onAbort = () => reject(cancelled(what));
    signal.addEventListener("abort", onAbort, { once: true });
    shared.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
