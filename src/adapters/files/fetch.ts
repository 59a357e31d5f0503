/**
 * What is no file of this machine becomes one: HTTP answers and standard input are kept in a scratch file while they are
 * read. Only then do they have a digest, a second reading, and a place to go on from.
 */
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
    const path = join(this.#make(), String(this.#files++));
    const chunks = input === "-" ? stdin : await answerOf(input, name);
    const fd = openSync(path, "wx", 0o600);
    try {
      for await (const chunk of chunks) writeAll(fd, chunk);
    } catch (e) {
      if (e instanceof Failure) throw e;
      throw fetchFailure(e, name);
    } finally {
      closeSync(fd);
    }
    return fileAt(path, name);
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
      retry: response.status >= 500,
    });
  return bodyOf(response, name);
}

function fetchFailure(e: unknown, name: string): Failure {
  const code = e instanceof Error && "code" in e ? String(e.code) : "";
  if (code === "ENOSPC" || code === "EDQUOT")
    return new Failure("files.scratch", "no space is left to keep it while it is read", {
      at: name,
      hint: "Free space in the temporary folder, or set TMPDIR to a larger one",
      cause: e,
    });
  return new Failure("files.http", `it could not be fetched: ${e instanceof Error ? e.message : String(e)}`, {
    at: name,
    cause: e,
  });
}
