/**
 * What is no file of this machine becomes one: HTTP answers and standard input are kept in a scratch file while they are
 * read. Only then do they have a digest, a second reading, and a place to go on from.
 */
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { scratchFailure } from "../../core/failure/disk.ts";
import { Failure } from "../../core/failure/failure.ts";
import { fileAt, type LocalFile } from "./locate.ts";

export function isFetched(input: string): boolean {
  return input === "-" || /^https?:\/\//.test(input);
}

export class Scratch {
  readonly #parent: string;
  #folder: string | null = null;
  #files = 0;

  constructor(parent: string = tmpdir()) {
    this.#parent = parent;
  }

  /** `stdin`: what `-` stands for. */
  async fetch(input: string, stdin: AsyncIterable<Uint8Array>): Promise<LocalFile> {
    const name = input === "-" ? "standard input" : withoutSecrets(input);
    const path = this.#kept(() => join(this.#make(), String(this.#files++)));
    const chunks = input === "-" ? stdin : await answerOf(input, name);
    const fd = this.#kept(() => openSync(path, "wx", 0o600));
    try {
      for await (const chunk of chunks) this.#kept(() => writeAll(fd, chunk));
    } catch (e) {
      if (e instanceof Failure) throw e;
      throw fetchFailure(e, name);
    } finally {
      closeSync(fd);
    }
    return fileAt(path, name);
  }

  /** Where it is kept, and not where it comes from. */
  #kept<T>(work: () => T): T {
    try {
      return work();
    } catch (e) {
      throw scratchFailure(e, this.#parent);
    }
  }

  #make(): string {
    this.#folder ??= mkdtempSync(join(this.#parent, "twg-scratch-"));
    return this.#folder;
  }

  remove(): void {
    if (this.#folder !== null) rmSync(this.#folder, { recursive: true, force: true });
    this.#folder = null;
  }
}

function writeAll(fd: number, chunk: Uint8Array): void {
  for (let at = 0; at < chunk.length; ) at += writeSync(fd, chunk, at);
}

function withoutSecrets(url: string): string {
  const u = new URL(url);
  u.username = "";
  u.password = "";
  u.search = "";
  return u.toString();
}

/** The whole body, or a failure: one that ends before its declared length is cut. */
async function* bodyOf(response: Response, name: string): AsyncGenerator<Uint8Array> {
  const encoded = response.headers.get("content-encoding") !== null;
  const declared = response.headers.get("content-length");
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    yield chunk;
  }
  if (!encoded && declared !== null && Number(declared) !== length)
    throw new Failure("files.http", `${length} of ${declared} bytes came`, { at: name });
}

/** Of the server, beside those from 500 on. */
const PASSING: ReadonlySet<number> = new Set([408, 425, 429]);

async function answerOf(url: string, name: string): Promise<AsyncIterable<Uint8Array>> {
  let response: Response;
  try {
    response = await fetch(url, { redirect: "follow" });
  } catch (e) {
    throw fetchFailure(e, name);
  }
  if (!response.ok)
    throw new Failure("files.http", `the server answered ${response.status} ${response.statusText}`, {
      at: name,
      retry: response.status >= 500 || PASSING.has(response.status),
    });
  return bodyOf(response, name);
}

function fetchFailure(e: unknown, name: string): Failure {
  return new Failure("files.http", `it could not be fetched: ${e instanceof Error ? e.message : String(e)}`, {
    at: name,
    cause: e,
  });
}
