/** The probe of uploads refuses a store that breaks one of its promises, with what it did. Method: a store of one object each. */
import { expect, test } from "bun:test";
import type { S3Objects } from "../../../src/adapters/object-store/s3-objects.ts";
import { probeUploads } from "../../../src/adapters/object-store/s3-probe.ts";
import { type S3Uploads, TOKEN } from "../../../src/adapters/object-store/s3-uploads.ts";
import type { Failure } from "../../../src/core/failure/failure.ts";

const BYTES = 10;

/** Keeps every promise; a flaw breaks one. */
class Store {
  readonly open = new Map<string, string>();
  readonly objects = new Map<string, { revision: string; bytes: number; metadata: Record<string, string> }>();
  readonly flaw: string;
  readonly removed: string[] = [];
  #answers: number;

  constructor(flaw: string, lostAnswers = 0) {
    this.flaw = flaw;
    this.#answers = lostAnswers;
  }
  async create(key: string, _token: string, unsure: () => void) {
    this.open.set(key, key);
    if (this.flaw === "loses an answer") {
      this.open.set(`${key} again`, key);
      unsure();
    }
    if (this.flaw === "shows early") this.#show(key);
    return key;
  }
  async under(prefix: string) {
    const open = [...this.open.keys()].filter((key) => key.startsWith(prefix));
    return open.map((key) => ({ key, upload: key }));
  }
  async part() {
    if (this.flaw === "takes no part") throw new Error("no part");
    return { tag: "t", crc: "" };
  }
  async parts(key: string) {
    if (!this.open.has(key)) return null;
    return this.flaw === "lists nothing" ? [] : [{ number: 1, tag: "t", bytes: BYTES }];
  }
  async abort(key: string) {
    if (this.flaw !== "keeps aborted") this.open.delete(key);
  }
  async complete(key: string) {
    if (this.#answers-- > 0) return "open";
    if (this.flaw === "shows nothing") return "done";
    if (this.open.delete(key) || this.flaw === "completes aborted") this.#show(key);
    else if (this.flaw === "forgets") this.objects.delete(key);
    return "done";
  }
  async head(key: string) {
    return this.objects.get(key) ?? null;
  }
  async remove(key: string) {
    this.objects.delete(key);
    this.removed.push(key);
  }
  #show(key: string) {
    const metadata: Record<string, string> = this.flaw === "no metadata" ? {} : { [TOKEN]: key };
    this.objects.set(key, { revision: "r", bytes: this.flaw === "cut" ? 3 : BYTES, metadata });
  }
}

const probe = (s: Store) =>
  probeUploads(s as unknown as S3Uploads, s as unknown as S3Objects, "p/i", "s3://b");

test("a store that keeps its word passes, also where answers are lost; nothing is left", async () => {
  const s = new Store("", 3);
  await probe(s);
  expect([[...s.open.keys()], [...s.objects.keys()], s.removed]).toEqual([[], [], ["p/i-kept"]]);
});

for (const [flaw, message] of [
  ["shows early", /shows an object before its upload is completed/],
  ["lists nothing", /does not list the parts/],
  ["keeps aborted", /keeps an upload that was given up/],
  ["completes aborted", /completes an upload that was given up/],
  ["shows nothing", /does not show an object whose upload was completed/],
  ["cut", /shows another size/],
  ["no metadata", /loses the metadata/],
  ["forgets", /loses an object that is completed twice/],
] as const) {
  test(`refused: ${flaw}`, async () => {
    const f = await probe(new Store(flaw)).then(
      () => Promise.reject(new Error("it passed")),
      (e: Failure) => e,
    );
    expect([f.code, f.kind, f.at]).toEqual(["store.unsuitable", "environment", "s3://b"]);
    expect(f.message).toMatch(message);
  });
}

test.each(["loses an answer", "takes no part"])("nothing is left open by a store that %s", async (flaw) => {
  const store = new Store(flaw);
  const ended = await probe(store).then(
    () => "well",
    () => "badly",
  );
  expect(ended).toBe(flaw === "takes no part" ? "badly" : "well");
  expect([...store.open.keys()]).toEqual([]);
});
