/**
 * Reads single files out of a jar (a zip file), so that Kafka's own message definitions can be compared with ours
 * without unpacking tools. Only what jars need: a central directory at the end, entries stored or deflated.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { inflateRawSync } from "node:zlib";

const END_OF_DIRECTORY = 0x06054b50;

export function readJar(path: string): Map<string, () => string> {
  const zip = readFileSync(path);
  let end = zip.length - 22;
  while (end >= 0 && zip.readUInt32LE(end) !== END_OF_DIRECTORY) end--;
  if (end < 0) throw new Error(`${path} is no jar`);
  const files = new Map<string, () => string>();
  let at = zip.readUInt32LE(end + 16);
  for (let n = zip.readUInt16LE(end + 10); n > 0; n--) {
    const nameLength = zip.readUInt16LE(at + 28);
    const name = zip.toString("utf8", at + 46, at + 46 + nameLength);
    const entry = {
      method: zip.readUInt16LE(at + 10),
      size: zip.readUInt32LE(at + 20),
      local: zip.readUInt32LE(at + 42),
    };
    files.set(name, () => {
      const start =
        entry.local + 30 + zip.readUInt16LE(entry.local + 26) + zip.readUInt16LE(entry.local + 28);
      const stored = zip.subarray(start, start + entry.size);
      return (entry.method === 0 ? stored : inflateRawSync(stored)).toString("utf8");
    });
    at += 46 + nameLength + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
  }
  return files;
}

const JAR = "kafka-clients-4.4.0.jar";

/** The environment's jar, or one anywhere below the project's cache folder; null if there is none. */
export function findClientsJar(): string | null {
  const named = process.env["TWG_KAFKA_CLIENTS_JAR"];
  if (named !== undefined && named !== "") return named;
  const cache = join(import.meta.dir, "../../../../.cache/kafka");
  if (!existsSync(cache)) return null;
  const found = readdirSync(cache, { recursive: true, encoding: "utf8" }).find((f) => f.endsWith(JAR));
  return found === undefined ? null : join(cache, found);
}
