// Goal: every reference is asked once, the first backend that has it decides, and nothing is half resolved. Method: backends made of maps.
import { describe, expect, test } from "bun:test";
import {
  askRefs,
  collectRefs,
  type Lookup,
  refProblems,
  replaceRefs,
  type SecretBackend,
  type SecretSources,
} from "../../../src/core/config/resolve.ts";
import { FileRef, Secret, SecretRef } from "../../../src/core/config/secret.ts";

const present = (text: string): Lookup => ({ state: "present", secret: new Secret(text) });

function backend(name: string, held: Record<string, Lookup>): SecretBackend {
  return { name, place: (s) => `${name}:${s}`, lookup: async (s) => held[s] ?? { state: "missing" } };
}

const sources: SecretSources = {
  backends: [
    backend("one", {
      a: present("from one"),
      hollow: { state: "empty" },
      shut: { state: "unreadable", reason: "is shut" },
    }),
    backend("two", { a: present("from two"), b: present("b"), hollow: present("x"), shut: present("x") }),
  ],
  readFile: async (path) => (path === "/ca" ? present("PEM") : { state: "missing" }),
};

const config = {
  kept: "text",
  number: 5,
  list: [{ password: new SecretRef("a") }, { password: new SecretRef("b") }],
  tls: { ca: new FileRef("/ca"), literal: new Secret("as is") },
};

describe("references", () => {
  test("are found wherever they are, with their paths", () => {
    const found = collectRefs(config, ["source"]).map((f) => f.path.join("."));
    expect(found).toEqual(["source.list.0.password", "source.list.1.password", "source.tls.ca"]);
  });

  test("are replaced by values, the first backend winning, and all else is kept", async () => {
    const asked = await askRefs(collectRefs(config), sources);
    expect(refProblems(asked, "x.toml", () => 1)).toEqual([]);
    const resolved = replaceRefs(config, asked);
    expect(resolved.list.map((l) => l.password.reveal())).toEqual(["from one", "b"]);
    expect(resolved.tls.ca.reveal()).toBe("PEM");
    expect(resolved.tls.literal.reveal()).toBe("as is");
    expect([resolved.kept, resolved.number]).toEqual(["text", 5]);
    expect(config.list[0]?.password).toBeInstanceOf(SecretRef);
  });

  test("a backend that has it empty or unreadable is not passed over", async () => {
    const refs = ["hollow", "shut", "nowhere"].map((n) => ({ path: ["s", n], ref: new SecretRef(n) }));
    const asked = await askRefs(refs, sources);
    expect(asked.map((a) => [a.status.state, a.status.backend])).toEqual([
      ["empty", "one"],
      ["unreadable", "one"],
      ["missing", "one, two"],
    ]);
    const problems = refProblems(asked, "x.toml", (path) => path.length);
    expect(problems.map((p) => [p.code, p.path, p.line])).toEqual([
      ["secrets.empty", "s.hollow", 2],
      ["secrets.unreadable", "s.shut", 2],
      ["secrets.missing", "s.nowhere", 2],
    ]);
    expect(problems[1]?.hint).toBe("one:shut is shut");
    expect(problems[2]?.hint).toBe("looked for one:nowhere, two:nowhere");
  });

  test("a file that is not there is a missing secret that names the file", async () => {
    const asked = await askRefs([{ path: ["ca"], ref: new FileRef("/no") }], sources);
    expect(refProblems(asked, "x.toml", () => 0)[0]).toMatchObject({
      code: "secrets.missing",
      hint: "looked for /no",
    });
  });
});
