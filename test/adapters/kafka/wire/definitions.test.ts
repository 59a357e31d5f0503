/**
 * Goal: our message definitions are Kafka's. Method: every field of every version that we describe is compared (place,
 * type, nullability, tag, default) with the definitions inside the kafka-clients jar, which Kafka's own classes are
 * generated from. `scripts/kafka-definitions.sh` fetches the jar.
 */
import { expect, test } from "bun:test";
import { APIS, type ApiName } from "../../../../src/adapters/kafka/wire/protocol.ts";
import { type Field, inVersions, type Message } from "../../../../src/adapters/kafka/wire/spec.ts";
import { findClientsJar, readJar } from "./jar.ts";

interface TheirField {
  readonly name: string;
  readonly type: string;
  readonly versions: string;
  readonly nullableVersions?: string;
  readonly taggedVersions?: string;
  readonly tag?: number;
  readonly default?: string | number | boolean;
  readonly fields?: readonly TheirField[];
}

interface TheirMessage {
  readonly apiKey: number;
  readonly validVersions: string;
  readonly flexibleVersions: string;
  readonly fields: readonly TheirField[];
  /** Structures that fields refer to by the name of their type. */
  readonly commonStructs?: readonly { readonly name: string; readonly fields: readonly TheirField[] }[];
}

/** One line per field of one version, in wire order: path, type, nullability, tag, default. */
type Line = string;

/** "3+", "0-12", "4", "none" */
function spans(text: string | undefined, version: number): boolean {
  if (text === undefined || text === "none") return false;
  if (text.endsWith("+")) return version >= Number(text.slice(0, -1));
  const [from, to] = text.split("-").map(Number);
  return version >= from! && version <= (to ?? from!);
}

const ZERO: Record<string, string> = {
  bool: "false",
  int8: "0",
  int16: "0",
  int32: "0",
  int64: "0",
  string: '""',
  uuid: '"AAAAAAAAAAAAAAAAAAAAAA"',
  bytes: "empty",
  records: "empty",
};

function theirDefault(f: TheirField): string {
  if (f.fields !== undefined || f.type.startsWith("[]")) return "";
  if (f.default === undefined) return ZERO[f.type]!;
  if (f.default === "null") return "null";
  if (f.type === "string") return JSON.stringify(f.default);
  return f.type.startsWith("int") ? String(BigInt(f.default)) : String(f.default);
}

function theirLines(fields: readonly TheirField[], version: number, path: string): Line[] {
  return fields
    .filter((f) => spans(f.versions, version))
    .flatMap((f) => {
      const name = path + f.name[0]!.toLowerCase() + f.name.slice(1);
      const array = f.type.startsWith("[]");
      const type = f.fields === undefined ? f.type.replace("[]", "") : "struct";
      const tag = spans(f.taggedVersions, version) ? f.tag : "-";
      const line = `${name} ${array ? "[]" : ""}${type} null:${spans(f.nullableVersions, version)} tag:${tag} ${theirDefault(f)}`;
      return [line, ...theirLines(f.fields ?? [], version, `${name}.`)];
    });
}

function ourDefault(f: Field): string {
  if (f.fields !== undefined || f.array) return "";
  if (f.preset === undefined) return ZERO[f.type!]!;
  return typeof f.preset === "string" ? JSON.stringify(f.preset) : String(f.preset);
}

function ourLines(fields: readonly Field[], version: number, path: string): Line[] {
  return fields
    .filter((f) => inVersions(f.since, version))
    .flatMap((f) => {
      const name = path + f.name;
      const type = f.type ?? "struct";
      const tag = inVersions(f.tagged, version) ? f.tag : "-";
      const line = `${name} ${f.array ? "[]" : ""}${type} null:${inVersions(f.nullable, version)} tag:${tag} ${ourDefault(f)}`;
      return [line, ...ourLines(f.fields ?? [], version, `${name}.`)];
    });
}

/** The files hold `//` comments on lines of their own. */
function parse(text: string): TheirMessage {
  const message = JSON.parse(text.replace(/^\s*\/\/.*$/gm, "")) as TheirMessage;
  const common = new Map((message.commonStructs ?? []).map((c) => [c.name, c.fields]));
  const resolved = (f: TheirField): TheirField => {
    const fields = f.fields ?? common.get(f.type.replace("[]", ""));
    return fields === undefined ? f : { ...f, fields: fields.map(resolved) };
  };
  return { ...message, fields: message.fields.map(resolved) };
}

const jar = findClientsJar();
const files = jar === null ? null : readJar(jar);
if (jar === null) {
  console.error(
    "SKIPPED: no kafka-clients jar (run scripts/kafka-definitions.sh or set TWG_KAFKA_CLIENTS_JAR)",
  );
}

test("the jar with Kafka's definitions is there in strict mode", () => {
  expect(jar !== null || process.env["TWG_STRICT"] !== "1").toBe(true);
});

for (const api of Object.keys(APIS) as ApiName[]) {
  for (const kind of ["request", "response"] as const) {
    test.skipIf(files === null)(`${api} ${kind} is as Kafka defines it, in every version`, () => {
      const ours: Message = APIS[api][kind];
      const file = `common/message/${api}${kind === "request" ? "Request" : "Response"}.json`;
      const theirs = parse(files!.get(file)!());
      expect(APIS[api].key).toBe(theirs.apiKey);
      expect(`${ours.versions[0]}-${ours.versions[1]}`).toBe(theirs.validVersions);
      expect(ours.flexible === null ? "none" : `${ours.flexible}+`).toBe(theirs.flexibleVersions);
      for (let v = ours.versions[0]; v <= ours.versions[1]; v++) {
        expect([v, ...ourLines(ours.fields, v, "")]).toEqual([v, ...theirLines(theirs.fields, v, "")]);
      }
    });
  }
}
