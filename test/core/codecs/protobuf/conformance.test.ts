/**
 * Goal: payloads of every category of the format's conformance suite are read or refused as Google's implementation does.
 * Method: test/golden/protobuf/conformance.py made them, with what that implementation writes again of each. A payload must
 * read as that does, by both of our ways; where we differ on purpose the case stands below with its reason, and a reason
 * that no case needs fails too.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { compileProtobuf } from "../../../../src/core/codecs/protobuf/compile.ts";
import { DecodeError, type RecordDecoder } from "../../../../src/core/codecs/record-codec.ts";
import { valueJson } from "../../../../src/core/types/value-json.ts";
import { agree } from "./agree.ts";
import { schemaText } from "./schema-text.ts";

const GOLDEN = new URL("../../../golden/protobuf/", import.meta.url);

type Case = readonly [name: string, payload: string, canonical: string | null | 1];

/** Where we differ on purpose: message/case and what we read. */
const DIFFERENT: Readonly<Record<string, RegExp>> = {
  // Google's readers hide a number that a closed enum does not know among unknown fields, and a map's entry with it.
  "a closed enum's unknown number is its digits": /(proto2|editions)\..*enum.*"(-1|8|150)"/,
  // A column of text holds UTF-8 alone, so what proto2 lets through is refused.
  "strings are UTF-8 in every syntax": /(proto2|editions)\..*RejectInvalidUtf8.* refused: decode\.encoding$/,
  // A message set is its bytes, with what is unknown in it; what is written again has that left out.
  "a message set is bytes": /(WireType|UnknownInMessage)\.message_set_correct/,
  // The implementation behind Python hides an entry that has more than a key and a value among unknown fields.
  "an entry with unknown fields is an entry": /ValidDataMap\.\w+\.(UnknownInEntry|WrongWireTypes) /,
};

interface World {
  readonly message: string;
  readonly decoder: RecordDecoder;
  readonly cases: Case[];
}

const worlds: World[] = [];
let cases: Case[] = [];
for (const line of JSON.parse(readFileSync(new URL("conformance.json", GOLDEN), "utf8")) as (
  | Case
  | [string, string]
)[]) {
  if (line.length === 3) {
    cases.push(line);
    continue;
  }
  const [message, file] = line;
  const schema = schemaText(readFileSync(new URL(`${file}.proto`, GOLDEN), "utf8"));
  worlds.push({ message, decoder: compileProtobuf(schema, { message }), cases });
  cases = [];
}

function seen(decoder: RecordDecoder, payload: Uint8Array): string {
  try {
    return valueJson(decoder.value(payload, 0, payload.length));
  } catch (e) {
    if (e instanceof DecodeError) return `refused: ${e.code}`;
    throw e;
  }
}

describe("as Google's implementation", () => {
  const used = new Set<string>();
  test.each(worlds.map((w) => [w.message, w] as const))(
    "%s",
    (_, { decoder, cases, message }) => {
      const payloads = cases.map((c) => Uint8Array.fromHex(c[1]));
      // A message of 900 columns: comparing all cells of all cases takes long and shows no more.
      agree(
        decoder,
        payloads.filter((_, i) => i % 6 === 0),
      );
      const wrong: string[] = [];
      for (const [i, [name, payload, canonical]] of cases.entries()) {
        const ours = seen(decoder, payloads[i]!);
        const theirs =
          canonical === null
            ? "refused"
            : seen(decoder, Uint8Array.fromHex(canonical === 1 ? payload : canonical));
        if (
          theirs === "refused" ? ours.startsWith("refused") : ours === theirs && !ours.startsWith("refused")
        )
          continue;
        const known = Object.entries(DIFFERENT).find(([, d]) => d.test(`${message}/${name} ${ours}`));
        if (known === undefined) wrong.push(`${name}: ${payload.slice(0, 60)}: ours ${diff(ours, theirs)}`);
        else used.add(known[0]);
      }
      expect(wrong).toEqual([]);
    },
    60_000,
  );

  test("every reason is needed", () =>
    expect(Object.keys(DIFFERENT).filter((d) => !used.has(d))).toEqual([]));
});

function diff(a: string, b: string): string {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return `${a.slice(Math.max(0, at - 30), at + 60)} theirs ${b.slice(Math.max(0, at - 30), at + 60)}`;
}
