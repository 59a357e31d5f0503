/** Reads a small text file as a secret: bounded, a regular file, UTF-8, one line end at its end taken off. */
import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { sep } from "node:path";
import type { Lookup } from "../../core/config/resolve.ts";
import { Secret } from "../../core/config/secret.ts";

/** The size that Kubernetes allows a secret. */
const MAX_BYTES = 1024 * 1024;

/** `within`: a folder that the file must really lie in after every link was followed. */
export async function readSecretFile(path: string, within: string | null): Promise<Lookup> {
  try {
    const real = await realpath(path);
    if (within !== null && !real.startsWith((await realpath(within)) + sep)) {
      return { state: "unreadable", reason: "is a link that leads out of the folder" };
    }
    return await readBounded(real);
  } catch (e) {
    return failed(e);
  }
}

async function readBounded(path: string): Promise<Lookup> {
  // Opening a pipe that has no writer would wait for ever without O_NONBLOCK.
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stat = await handle.stat();
    if (!stat.isFile()) return { state: "unreadable", reason: "is not a regular file" };
    if (stat.size > MAX_BYTES) return { state: "unreadable", reason: `is larger than ${MAX_BYTES} bytes` };
    const bytes = new Uint8Array(stat.size);
    let length = 0;
    while (length < bytes.length) {
      const { bytesRead } = await handle.read(bytes, length, bytes.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return textLookup(bytes.subarray(0, length));
  } finally {
    await handle.close();
  }
}

function textLookup(bytes: Uint8Array): Lookup {
  try {
    return secretLookup(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    return { state: "unreadable", reason: "is not UTF-8 text" };
  }
}

/** Editors and `echo` end a file with a line end that is no part of the secret: one is taken off, not more. */
export function secretLookup(text: string): Lookup {
  const value = text.replace(/\r?\n$/, "");
  return value === "" ? { state: "empty" } : { state: "present", secret: new Secret(value) };
}

function failed(e: unknown): Lookup {
  const code = e instanceof Error && "code" in e ? String(e.code) : "";
  if (code === "ENOENT" || code === "ENOTDIR") return { state: "missing" };
  if (code === "EACCES" || code === "EPERM")
    return { state: "unreadable", reason: "may not be read by this user" };
  if (code === "ELOOP") return { state: "unreadable", reason: "is a link that leads to itself" };
  return { state: "unreadable", reason: `cannot be read (${code === "" ? "unknown error" : code})` };
}
