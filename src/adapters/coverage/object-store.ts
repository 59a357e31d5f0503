/**
 * The versioned object of a sink's coverage in an object store: `coverage.json`, replaced on condition that it is
 * still the one that was read. Its metadata carry the number of the version and the tag of its writer.
 *
 * What an answer is worth. A success counts. Anything else is looked up: the answer may be lost, or a refusal may be
 * the echo of our own success, where somebody in between sent the request twice. If the object is our version with
 * our tag we won; if it is our version with another tag we lost, for no two writes follow one version; in between, the
 * caller is told "unknown" and finds its tag in the ring of writers of whatever is there, or does not.
 *
 * A late write cannot win unseen either: it is conditional on the version that it was made upon, and no content comes
 * twice, since every state holds its own number.
 */
import { MAX_STATE_BYTES } from "../../core/coverage/state.ts";
import type { Code } from "../../core/failure/codes.ts";
import { Failure } from "../../core/failure/failure.ts";
import type { ConditionalObjects, ObjectHead } from "../../core/ports/conditional-objects.ts";
import type { Versioned, VersionedStore, WriteOutcome } from "../../core/ports/versioned-store.ts";

export const COVERAGE_OBJECT = "coverage.json";
const VERSION = "twg-version";
const TAG = "twg-tag";
const SEGMENT = /^index-(.+)\.json$/;
/** Writers that race for one version in the probe at the start. */
const RACERS = 4;
/** Probes that may be spoilt by lost answers or false refusals before the store counts as out of order. */
const PROBES = 8;
const MOST_SPOILT = 2;
const CLEAN_AFTER_SPOILT = 3;
/** A segment is at most three levels of states' entries. */
const MAX_SEGMENT_BYTES = 1024 * 1024 * 1024;

/** Relative to the prefix of the sink. */
export function coverageKeyOf(pipeline: string, sink: string): string {
  return `_twg/${pipeline}/${sink}/coverage`;
}

/** Where the schema of the sink's table lies, as an object of its own. */
export function tableKeyOf(pipeline: string, sink: string): string {
  return `_twg/${pipeline}/${sink}/table`;
}

/** Of the book of duplicates (core/coverage/dedup-book.ts). */
export function dedupKeyOf(pipeline: string, sink: string): string {
  return `_twg/${pipeline}/${sink}/dedup`;
}

/** Of the book of plans (core/coverage/plan-book.ts). */
export function planKeyOf(pipeline: string, sink: string): string {
  return `_twg/${pipeline}/${sink}/plans`;
}

/** Between two of them lies one durable event of a write; a test ends the process there. */
type WriteHook = (point: "coverage_written" | "coverage_linked" | "coverage_won") => void | Promise<void>;

export interface ObjectVersionedOptions {
  /** Of `coverageKeyOf` and its like. */
  readonly folder: string;
  /** Name of the object in it; default: of the coverage. */
  readonly object?: string;
  /** Unique to the process, for the names of its probes. */
  readonly instance: string;
  readonly hook?: WriteHook | undefined;
}

export class ObjectVersionedStore implements VersionedStore {
  readonly place: string;
  readonly #objects: ConditionalObjects;
  readonly #folder: string;
  readonly #probe: string;
  /** What was last seen or written: the condition of the next write. */
  #known: { readonly version: number; readonly revision: string } | null = null;

  readonly #hook: WriteHook | undefined;
  readonly #object: string;

  constructor(
    objects: ConditionalObjects,
    { folder, instance, hook, object = COVERAGE_OBJECT }: ObjectVersionedOptions,
  ) {
    this.#objects = objects;
    this.#object = object;
    this.#folder = folder;
    this.#hook = hook;
    this.#probe = `${folder}/probe-${instance}`;
    this.place = `${objects.place}/${folder}`;
  }

  async prepare(): Promise<void> {
    try {
      await this.#proveConditions();
    } catch (e) {
      throw coverageFailure(e, this.place);
    }
  }

  async read(): Promise<Versioned | null> {
    try {
      const found = await this.#read();
      if (found === null) {
        this.#known = null;
        return null;
      }
      const version = versionOf(found.head, this.#key);
      this.#known = { version, revision: found.head.revision };
      return { version, bytes: found.bytes, name: `${this.place}/${this.#object} version ${version}` };
    } catch (e) {
      throw coverageFailure(e, this.place);
    }
  }

  async write(expected: number | null, bytes: Uint8Array, tag: string): Promise<WriteOutcome> {
    const version = (expected ?? 0) + 1;
    try {
      const revision = await this.#revisionOf(expected);
      if (revision === undefined) return "lost";
      const metadata = { [VERSION]: String(version), [TAG]: tag };
      await this.#hook?.("coverage_written");
      const put = await this.#objects.putIf(this.#key, bytes, metadata, { revision });
      if (put.outcome === "stored") {
        await this.#hook?.("coverage_linked");
        this.#known = { version, revision: put.revision };
        await this.#hook?.("coverage_won");
        return "won";
      }
    } catch (e) {
      throw coverageFailure(e, this.place);
    }
    return this.#lookUp(version, tag);
  }

  async putSegment(name: string, bytes: Uint8Array): Promise<void> {
    try {
      await this.#objects.put(this.#segment(name), bytes);
    } catch (e) {
      throw coverageFailure(e, this.place);
    }
  }

  async getSegment(name: string): Promise<Uint8Array | null> {
    try {
      return (await this.#objects.get(this.#segment(name), MAX_SEGMENT_BYTES))?.content ?? null;
    } catch (e) {
      throw coverageFailure(e, this.place);
    }
  }

  async sweep(keep: ReadonlySet<string> | null): Promise<void> {
    try {
      const from = `${this.#folder}/`;
      for (const { key } of await this.#objects.list(from)) {
        const name = key.slice(from.length);
        const segment = SEGMENT.exec(name)?.[1];
        // Another of our own books may be proving the store's conditions right now.
        const probe = name.startsWith("probe-") && !key.startsWith(`${this.#probe}-`);
        const stray = probe || (segment !== undefined && keep?.has(segment) === false);
        if (stray) await this.#objects.remove(key);
      }
    } catch (e) {
      throw coverageFailure(e, this.place);
    }
  }

  get #key(): string {
    return `${this.#folder}/${this.#object}`;
  }

  #segment(name: string): string {
    return `${this.#folder}/index-${name}.json`;
  }

  async #read(): Promise<{ readonly head: ObjectHead; readonly bytes: Uint8Array } | null> {
    try {
      const found = await this.#objects.get(this.#key, MAX_STATE_BYTES);
      return found === null ? null : { head: found, bytes: found.content };
    } catch (e) {
      if (!(e instanceof Failure) || e.code !== "bytes.limit") throw e;
      // One byte over the limit is enough for the parser to refuse it by name.
      const head = await this.#objects.head(this.#key);
      return head === null ? null : { head, bytes: new Uint8Array(MAX_STATE_BYTES + 1) };
    }
  }

  /** Of the version that a write is made upon; null for none, undefined if that is not the one that is there. */
  async #revisionOf(expected: number | null): Promise<string | null | undefined> {
    if (expected === null) return null;
    if (this.#known?.version === expected) return this.#known.revision;
    const head = await this.#objects.head(this.#key);
    if (head === null || versionOf(head, this.#key) !== expected) return undefined;
    this.#known = { version: expected, revision: head.revision };
    return head.revision;
  }

  async #lookUp(version: number, tag: string): Promise<WriteOutcome> {
    try {
      const head = await this.#objects.head(this.#key);
      if (head === null || versionOf(head, this.#key) !== version) return "unknown";
      this.#known = { version, revision: head.revision };
      return head.metadata[TAG] === tag ? "won" : "lost";
    } catch {
      return "unknown";
    }
  }

  /**
   * Lost answers and a single refusal prove nothing: then once more, with an object of another name. Nor does a single
   * write that should not have been stored, since a process that starts as well may have swept the probe away before
   * it; but then several proofs in a row are asked for.
   */
  async #proveConditions(): Promise<void> {
    let spoilt = 0;
    let clean = 0;
    for (let tries = 1; ; tries++) {
      const key = `${this.#probe}-${tries}`;
      try {
        if (await this.#proveWith(key)) clean++;
        else this.#expect(tries < PROBES, "refuses a write whose If-Match holds");
        if (clean >= (spoilt === 0 ? 1 : CLEAN_AFTER_SPOILT)) return;
      } catch (e) {
        if (!(e instanceof Failure) || tries === PROBES) throw e;
        if (e.code === "coverage.no_conditions") {
          if (++spoilt > MOST_SPOILT) throw e;
          clean = 0;
        } else if (!e.retry) throw e;
      } finally {
        await this.#objects.remove(key).catch(() => {});
      }
    }
  }

  /** False: a write was refused whose condition held, as by somebody in between who is overloaded or in doubt. */
  async #proveWith(key: string): Promise<boolean> {
    const put = (text: string, revision: string | null) =>
      this.#objects.putIf(key, new TextEncoder().encode(text), { [TAG]: text }, { revision });
    const race = await Promise.all(Array.from({ length: RACERS }, (_, i) => put(`race ${i}`, null)));
    const won = race.filter((p) => p.outcome === "stored").length;
    this.#expect(won < 2, `let ${won} of ${RACERS} writers make one new object`);
    const first = await this.#objects.get(key, 1024);
    if (first === null) throw unanswered();
    this.#expect((await put("second", null)).outcome !== "stored", "overwrites in spite of If-None-Match");
    const next = await put("third", first.revision);
    if (next.outcome === "refused") {
      if ((await this.#objects.head(key))?.revision === first.revision) return false;
    }
    if (next.outcome !== "stored") throw unanswered();
    this.#expect(next.revision !== first.revision, "names two contents by one entity tag");
    this.#expect((await put("late", first.revision)).outcome !== "stored", "overwrites in spite of If-Match");
    const last = await this.#objects.head(key);
    // Another process's sweep in the midst of it takes the probe away.
    if (last === null) throw unanswered();
    this.#expect(last.metadata[TAG] === "third", "does not keep what was written, or its metadata");
    return true;
  }

  #expect(holds: boolean, what: string): void {
    if (holds) return;
    throw new Failure("coverage.no_conditions", `the store ${what}`, {
      at: this.place,
      hint: "It needs If-None-Match and If-Match on writes: docs/object-stores.md lists the stores that were tried",
    });
  }
}

function unanswered(): Failure {
  return new Failure("coverage.unavailable", "a write of the start-up probe was not answered");
}

/** Throws coverage.corrupt for an object that is not one of ours. */
function versionOf(head: ObjectHead, key: string): number {
  const version = Number(head.metadata[VERSION]);
  if (Number.isSafeInteger(version) && version > 0) return version;
  throw new Failure("coverage.corrupt", `the object has no metadata ${VERSION}: twg did not write it`, {
    at: key,
    hint: "If it was copied or restored, restore it with its metadata",
  });
}

function coverageFailure(e: unknown, place: string): Failure {
  if (!(e instanceof Failure)) throw e;
  const code = CODES.get(e.code);
  if (code === undefined) return e;
  return new Failure(code, e.message, {
    at: e.at ?? place,
    cause: e,
    ...(e.hint === null ? {} : { hint: e.hint }),
  });
}

const CODES: ReadonlyMap<Code, Code> = new Map<Code, Code>([
  ["store.unavailable", "coverage.unavailable"],
  ["store.denied", "coverage.denied"],
  ["store.full", "coverage.full"],
]);
