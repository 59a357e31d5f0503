/**
 * Goal: what a server sends is read however it is cut, what no server sends is refused before memory is taken. Method:
 * messages written out by hand from the protocol's documentation, in pieces of every size, and damaged at every byte.
 */
import { describe, expect, test } from "bun:test";
import { MessageFramer, type ServerMessage } from "../../../src/adapters/postgres/wire/backend.ts";
import { serverFailure } from "../../../src/adapters/postgres/wire/errors.ts";
import * as frontend from "../../../src/adapters/postgres/wire/frontend.ts";
import { Failure } from "../../../src/core/failure/failure.ts";

const latin1 = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, "latin1"));
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

function message(type: string, body: string): Uint8Array {
  const out = new Uint8Array(5 + body.length);
  out.set(latin1(type));
  new DataView(out.buffer).setInt32(1, 4 + body.length);
  out.set(latin1(body), 5);
  return out;
}

const SESSION: readonly [Uint8Array, ServerMessage][] = [
  [
    message("R", "\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"),
    { t: "authentication", auth: { kind: "sasl", mechanisms: ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"] } },
  ],
  [message("R", "\0\0\0\0"), { t: "authentication", auth: { kind: "ok" } }],
  [message("S", "server_version\x0015.18\0"), { t: "parameter", name: "server_version", value: "15.18" }],
  [message("K", "\0\0\0\x07\0\0\0\x09"), { t: "key", processId: 7, secret: 9 }],
  [message("D", "\0\x02\0\0\0\x01x\xff\xff\xff\xff"), { t: "row", values: ["x", null] }],
  [message("C", "SELECT 1\0"), { t: "complete", tag: "SELECT 1" }],
  [message("n", ""), { t: "other" }],
  [message("G", "\x01\0\0"), { t: "copy_in" }],
  [
    message("E", "SERROR\0VERROR\0C23505\0Mdoubled\0DKey (a)=(1)\0spublic\0tt\0nt_pkey\0\0"),
    {
      t: "error",
      notice: {
        severity: "ERROR",
        sqlstate: "23505",
        message: "doubled",
        hint: null,
        where: null,
        schema: "public",
        table: "t",
        column: null,
        constraint: "t_pkey",
      },
    },
  ],
  [message("Z", "I"), { t: "ready", status: "I" }],
];
const BYTES = Uint8Array.from(SESSION.flatMap(([b]) => [...b]));

function read(bytes: Uint8Array, piece: number): ServerMessage[] {
  const seen: ServerMessage[] = [];
  const framer = new MessageFramer("db:5432", (m) => seen.push(m));
  for (let at = 0; at < bytes.length; at += piece) framer.push(bytes.subarray(at, at + piece));
  return seen;
}

describe("what a server says", () => {
  test("is the same in pieces of any size", () => {
    for (let piece = 1; piece <= 40; piece++) expect(read(BYTES, piece)).toEqual(SESSION.map(([, m]) => m));
    expect(read(BYTES, BYTES.length)).toEqual(SESSION.map(([, m]) => m));
  });

  test("damaged at any byte it is read otherwise or refused by code, and never hangs or takes memory", () => {
    for (let at = 0; at < BYTES.length; at++) {
      for (const value of [0x00, 0x7f, 0xff]) {
        const damaged = BYTES.slice();
        damaged[at] = value;
        try {
          read(damaged, 7);
        } catch (e) {
          if (!(e instanceof Failure)) throw e;
          expect(e.code).toMatch(/^postgres\.(not_postgres|response_invalid)$/);
        }
      }
    }
  });

  test("a message that announces more than is sane is refused at its head", () => {
    const head = latin1("D\x7f\xff\xff\xff");
    expect(() => read(Uint8Array.from([...SESSION[1]![0], ...head]), 100)).toThrow(/a message "D\.\.\.\."/);
  });

  test("another service is named by what it says first", () => {
    for (const text of ["HTTP/1.1 400", "SSH-2.0-Ope", "220 mail rea"]) {
      expect(() => read(latin1(text), 5)).toThrow(`answers with "${text.slice(0, 5)}"`);
    }
  });

  test("an error becomes a code, its place, and nothing of the row", () => {
    const notice = {
      severity: "ERROR",
      message: "boom",
      hint: null,
      where: "COPY t, line 3: secret",
      schema: "s",
      table: "t",
      column: "c",
      constraint: null,
    };
    const codes = Object.fromEntries(
      [
        "57P01",
        "40001",
        "40P01",
        "53100",
        "42501",
        "23514",
        "22P02",
        "42P01",
        "55P03",
        "57014",
        "08006",
        "XX000",
        "25006",
        "28P01",
        "25P04",
        "58000",
        "58P02",
        "72000",
      ].map((s) => {
        const f = serverFailure({ ...notice, sqlstate: s }, "db:5432");
        expect(f.message).toBe(`boom (table s.t, column c) [${s}]`);
        return [s, `${f.code} ${f.retry}`];
      }),
    );
    expect(codes).toEqual({
      "57P01": "postgres.unavailable true",
      "40001": "postgres.conflict true",
      "40P01": "postgres.conflict true",
      "53100": "postgres.full true",
      "42501": "postgres.denied false",
      "23514": "postgres.constraint false",
      "22P02": "postgres.value_refused false",
      "42P01": "postgres.missing false",
      "55P03": "postgres.conflict true",
      "57014": "postgres.timeout true",
      "08006": "postgres.disconnected true",
      XX000: "postgres.refused false",
      "25006": "postgres.read_only true",
      "25P04": "postgres.timeout true",
      "58000": "postgres.unavailable true",
      "58P02": "postgres.unavailable true",
      "72000": "postgres.conflict true",
      "28P01": "postgres.auth_failed false",
    });
  });
});

describe("what we say", () => {
  // Each written out from the message formats of the documentation.
  test("is what the protocol wants, byte for byte", () => {
    expect(hex(frontend.sslRequest())).toBe("0000000804d2162f");
    expect(hex(frontend.cancelRequest(1, 2))).toBe("0000001004d2162e0000000100000002");
    expect(hex(frontend.startup({ user: "u" }))).toBe("0000001000030000757365720075000 0".replace(" ", ""));
    expect(hex(frontend.simpleQuery("x"))).toBe("51000000067800");
    expect(hex(frontend.copyDone())).toBe("6300000004");
    expect(hex(frontend.terminate())).toBe("5800000004");
    expect(hex(frontend.saslInitial("S", latin1("ab")))).toBe("700000000c5300000000026162");
    const statement = frontend.pipeline([{ sql: "s", parameters: ["a", null] }]);
    expect(hex(statement)).toBe(
      [
        "5000000009007300" + "0000",
        "420000001500000000000200000001" + "61" + "ffffffff" + "0000",
        "44000000065000",
        "4500000009" + "0000000000",
        "5300000004",
      ].join(""),
    );
  });

  test("no string with a NUL, which would end it early", () => {
    expect(() => frontend.simpleQuery("a\0b")).toThrow("NUL");
  });
});
