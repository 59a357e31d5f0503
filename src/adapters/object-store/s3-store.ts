/**
 * Two-phase objects in an S3-alike. A staged object is an open multipart upload under the final key, which nobody can
 * see; publishing completes it. Its parts are in the target, so that whoever finds the intent can complete it.
 *
 * What a completion's answer is worth: nothing by itself. It may be lost, it may come from a repetition by somebody in
 * between, and some gateways answer a second completion with success while the first is still at work. So after each
 * one the object is looked at, and it counts only if it is there with our token and size.
 *
 * And what an absent upload is worth: while a completion is under way some gateways show neither the upload nor the
 * object. Both count as gone for good only if they stay so for `gone_after_ms`. Nothing of ours removes an upload that an
 * intent names, so that time is spent only after a crash within a completion, or when people removed the upload.
 */
import { Failure } from "../../core/failure/failure.ts";
import type { ObjectHead } from "../../core/ports/conditional-objects.ts";
import type { ObjectStore, StagedObject, Target, TargetState } from "../../core/ports/object-store.ts";
import { sleep } from "../../core/time/clock.ts";
import { S3Objects } from "./s3-objects.ts";
import { probeUploads } from "./s3-probe.ts";
import { checkedKey, type S3Requests } from "./s3-requests.ts";
import { StagedUpload } from "./s3-staged.ts";
import { parseStaging, type Staging } from "./s3-staging.ts";
import { sweepUploads } from "./s3-sweep.ts";
import { abortUpload, type ListedPart, S3Uploads, TOKEN } from "./s3-uploads.ts";

export interface S3StoreOptions {
  /** Folder for what is ours, relative to the prefix: `ownFolder(pipeline, sink)`. */
  readonly own: string;
  /** Unique to the process and lane, and part of every key that is staged. */
  readonly instance: string;
}

/** A store that fails so often in a row is not fit. */
const PROBES = 3;
const LOOK_FIRST_MS = 100;
const LOOK_LONGEST_MS = 2_000;
/** Completions of one object before its caller is told; the caller waits outages out. */
const COMPLETIONS = 4;

export function ownFolder(pipeline: string, sink: string): string {
  return `_twg/${pipeline}/${sink}`;
}

export class S3ObjectStore implements ObjectStore {
  readonly place: string;
  readonly #o: S3StoreOptions;
  readonly #r: S3Requests;
  readonly #uploads: S3Uploads;
  readonly #objects: S3Objects;
  #serial = 0;

  constructor(options: S3StoreOptions, requests: S3Requests) {
    this.#o = options;
    this.#r = requests;
    this.place = requests.place();
    this.#uploads = new S3Uploads(requests);
    this.#objects = new S3Objects(requests);
  }

  /** Leaves a mark that this process may have uploads open, and proves that the store keeps what is promised of it. */
  async prepare(): Promise<void> {
    const { own, instance } = this.#o;
    await this.#objects.put(`${own}/instances/${instance}`, new TextEncoder().encode("twg\n"));
    for (let tries = 1; ; tries++) {
      try {
        return await probeUploads(
          this.#uploads,
          this.#objects,
          `${own}/probe/${instance}-${tries}`,
          this.#r.place(),
        );
      } catch (e) {
        // Another process's sweep in the midst of it takes the probe away.
        if (!(e instanceof Failure) || e.code !== "store.unsuitable" || tries === PROBES) throw e;
        await this.#r.pause(tries);
      }
    }
  }

  async stage(key: string): Promise<StagedObject> {
    const token = `${this.#o.instance}-${this.#serial++}`;
    const { partBytes } = this.#r.connection;
    const at = this.#r.place(checkedKey(key));
    return new StagedUpload({ key, token, partBytes, at }, this.#uploads, this.#r.clock);
  }

  async probe(target: Target): Promise<TargetState> {
    const staging = this.#staging(target);
    const { clock } = this.#r;
    const until = clock.monotonic() + this.#r.connection.goneAfterMs;
    for (let pause = LOOK_FIRST_MS; ; pause = Math.min(2 * pause, LOOK_LONGEST_MS)) {
      const state = await this.#look(target, staging);
      if (state !== "absent" || clock.monotonic() >= until) return state;
      await sleep(clock, pause);
    }
  }

  async publish(target: Target): Promise<void> {
    const staging = this.#staging(target);
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#uploads.complete(target.key, staging.upload, staging.parts);
      if (answer === "done" && (await this.#isPublished(target, staging))) return;
      const state = await this.probe(target);
      if (state === "published") return;
      if (state === "absent") throw this.#absent(target);
      if (attempt === COMPLETIONS) {
        throw new Failure("store.unavailable", "the upload is whole and its completion does not succeed", {
          at: this.#r.place(target.key),
        });
      }
      await this.#r.pause(attempt);
    }
  }

  async discard(target: Target): Promise<void> {
    await abortUpload(this.#uploads, target.key, this.#staging(target).upload);
  }

  async sweep(keep: ReadonlySet<string>): Promise<readonly string[]> {
    const { own, instance } = this.#o;
    const uploads = [...keep].map((text) => parseStaging(text, this.place).upload);
    return sweepUploads({ own, instance, keep: new Set(uploads) }, this.#uploads, this.#objects);
  }

  #staging(target: Target): Staging {
    return parseStaging(target.staging, this.#r.place(checkedKey(target.key)));
  }

  async #look(target: Target, staging: Staging): Promise<TargetState> {
    if (await this.#isPublished(target, staging)) return "published";
    const parts = await this.#uploads.parts(target.key, staging.upload);
    // Not what was sealed: as good as gone, and never shown.
    if (parts !== null) return isWhole(parts, target, staging) ? "staged" : "absent";
    // It may have been completed between the two looks.
    return (await this.#isPublished(target, staging)) ? "published" : "absent";
  }

  async #isPublished(target: Target, staging: Staging): Promise<boolean> {
    const found = await this.#objects.head(target.key);
    if (found === null) return false;
    if (found.bytes === target.bytes && isOurs(found, staging)) return true;
    throw new Failure(
      "store.foreign",
      `an object of ${found.bytes} bytes stands where one of ${target.bytes} bytes belongs`,
      { at: this.#r.place(target.key), hint: "Move it away; it is not what twg wrote" },
    );
  }

  #absent(target: Target): Failure {
    return new Failure("store.absent", "neither the upload nor the published object is there", {
      at: this.#r.place(target.key),
    });
  }
}

/** A part that was sent twice may be listed twice. */
function isWhole(listed: readonly ListedPart[], target: Target, staging: Staging): boolean {
  let bytes = 0;
  for (const [i, { tag }] of staging.parts.entries()) {
    const found = listed.find((p) => p.number === i + 1 && bare(p.tag) === bare(tag));
    if (found === undefined) return false;
    bytes += found.bytes;
  }
  return bytes === target.bytes;
}

/** Some stores quote a tag in one answer and not in another. */
const bare = (tag: string): string => tag.replaceAll('"', "");

/**
 * By the token; an object that was stripped of its metadata (a gateway did so when an upload was given up while it was
 * being completed) by the tag that the store makes of the parts' tags.
 */
function isOurs(found: ObjectHead, staging: Staging): boolean {
  const token = found.metadata[TOKEN];
  return token === undefined ? bare(found.revision) === tagOfParts(staging) : token === staging.token;
}

/** MD5 over the parts' MD5 sums and their count; "" where the parts' tags are no such sums. */
function tagOfParts({ parts }: Staging): string {
  const tags = parts.map((p) => bare(p.tag));
  if (!tags.every((t) => /^[0-9a-f]{32}$/.test(t))) return "";
  const md5 = new Bun.CryptoHasher("md5");
  for (const t of tags) md5.update(Uint8Array.fromHex(t));
  return `${md5.digest("hex")}-${parts.length}`;
}
