/** A token from a file that something else keeps fresh, such as a projected service account token. */
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { Failure } from "../../../core/failure/failure.ts";
import { checkToken } from "../../../core/sasl/oauthbearer.ts";

const MAX_BYTES = 1024 * 1024;

export async function readTokenFile(path: string): Promise<string> {
  const token = (await textOf(path)).trim();
  checkToken(token, path);
  return token;
}

async function textOf(path: string): Promise<string> {
  try {
    // Opening a pipe that has no writer would wait for ever without O_NONBLOCK.
    const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const stat = await handle.stat();
      if (!stat.isFile()) throw unreadable(path, "it is not a regular file");
      if (stat.size > MAX_BYTES) throw unreadable(path, `it has ${stat.size} bytes`);
      return await handle.readFile({ encoding: "utf8" });
    } finally {
      await handle.close();
    }
  } catch (e) {
    if (e instanceof Failure) throw e;
    throw unreadable(path, e instanceof Error && "code" in e ? String(e.code) : "it cannot be read");
  }
}

function unreadable(path: string, why: string): Failure {
  return new Failure("sasl.token_unreadable", `the token file cannot be used: ${why}`, {
    at: path,
    hint: "source.sasl.token_file: is the path right, and may this user read it?",
  });
}
