/**
 * Goal: what cannot work is refused at the start with one message that names the setting, and with the right exit
 * code: 2 for the configuration, 3 for what is around us. Method: real brokers, one mistake at a time, and then the
 * same pipeline without the mistake, which lands everything: a refusal costs nothing.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { demandBrokers } from "./demand-brokers.ts";
import { feedAll } from "./feeder.ts";
import { confined } from "./privileges.ts";
import { ALICE, admin, BOB, createTopic, endsOf, fresh, MAIN, type Served } from "./real-kafka.ts";
import {
  catchUp,
  command,
  type Ended,
  type PipelineSpec,
  pipeline,
  SECRETS,
  stream,
  workFolder,
} from "./twg.ts";

const LIMIT = 60_000;
const served = MAIN as Served;
const RECORDS = 500;
const topic = fresh("refused");
const QUICK = 'connect_timeout_ms = "1s"\ntopic_wait_ms = "500ms"';

demandBrokers("refusals");

beforeAll(async () => {
  if (MAIN === null) return;
  await createTopic(served, topic, { partitions: 2 });
  await feedAll(served, topic, 2, RECORDS);
  await createTopic(served, `${topic}-secret`, { partitions: 1 });
  await feedAll(served, `${topic}-secret`, 1, 10);
});

const sasl = (username: string, password: string, mechanism = "SCRAM-SHA-512") =>
  `sasl = { mechanism = "${mechanism}", username = "${username}", password = "${password}" }`;
const tls = (ca: string, more = "") => `tls = { ca = { file = "${ca}" }${more} }`;
const mistake = (more: Partial<PipelineSpec>): PipelineSpec => ({ served, topics: [topic], ...more });

interface Case {
  readonly name: string;
  readonly exit: 2 | 3;
  readonly code: string;
  /** What the message must hold: the setting to look at. */
  readonly names: readonly string[];
  readonly spec: () => PipelineSpec;
}

const WRONG_PASSWORD = "not-the-password-7f3a";
SECRETS.add(WRONG_PASSWORD);

const CASES: readonly Case[] = [
  {
    name: "a wrong password",
    exit: 3,
    code: "kafka.auth_failed",
    names: ["source.sasl", "password"],
    spec: () => mistake({ bootstrap: served.sasl, source: sasl(ALICE.user, WRONG_PASSWORD) }),
  },
  {
    name: "a wrong password of PLAIN",
    exit: 3,
    code: "kafka.auth_failed",
    names: ["source.sasl", "password"],
    spec: () => mistake({ bootstrap: served.sasl, source: sasl(BOB.user, WRONG_PASSWORD, "PLAIN") }),
  },
  {
    name: "a login where the listener wants none",
    exit: 3,
    code: "kafka.mechanism_unsupported",
    names: ["source.sasl"],
    spec: () => mistake({ source: sasl(BOB.user, BOB.password, "PLAIN") }),
  },
  {
    name: "no login where the listener wants one",
    exit: 3,
    code: "kafka.unreachable",
    names: ["source.sasl"],
    spec: () => mistake({ bootstrap: served.sasl, source: QUICK }),
  },
  {
    name: "a topic that does not exist",
    exit: 3,
    code: "kafka.unknown_topic",
    names: ["source.topics"],
    spec: () => mistake({ topics: [`${topic}-not`], source: QUICK }),
  },
  {
    name: "a partition that does not exist",
    exit: 3,
    code: "kafka.unknown_partition",
    names: ["source.partitions"],
    spec: () => mistake({ source: `${QUICK}\npartitions = { "${topic}" = [0, 7] }` }),
  },
  {
    name: "plain text to a TLS port",
    exit: 3,
    code: "kafka.tls_expected",
    names: ["source.tls"],
    spec: () => mistake({ bootstrap: served.tls, source: QUICK }),
  },
  {
    name: "TLS to a plain-text port",
    exit: 3,
    code: "kafka.unreachable",
    names: ["source.tls"],
    spec: () => mistake({ source: `${QUICK}\n${tls(served.ca)}` }),
  },
  {
    name: "an authority that signed nobody",
    exit: 3,
    code: "net.tls_untrusted",
    names: ["source.tls.ca"],
    spec: () => mistake({ bootstrap: served.tls, source: tls(served.wrongCa) }),
  },
  {
    name: "a certificate for another name",
    exit: 3,
    code: "net.tls_name",
    names: ["source.tls.server_name"],
    spec: () => mistake({ bootstrap: served.tls, source: tls(served.ca, ', server_name = "kafka.test"') }),
  },
  {
    name: "no client certificate where one is wanted",
    exit: 3,
    code: "net.tls_client_cert",
    names: ["source.tls.cert", "source.tls.key"],
    spec: () => mistake({ bootstrap: served.mtls, source: tls(served.ca) }),
  },
  {
    name: "a port on which nobody listens",
    exit: 3,
    code: "kafka.unreachable",
    names: ["source.bootstrap", "127.0.0.1:1"],
    spec: () => mistake({ bootstrap: ["127.0.0.1:1"], source: QUICK }),
  },
  {
    name: "a host name that does not resolve",
    exit: 3,
    code: "kafka.unreachable",
    names: ["source.bootstrap", "no-such-host.invalid"],
    spec: () => mistake({ bootstrap: ["no-such-host.invalid:9092"], source: QUICK }),
  },
  {
    name: "a path through a file",
    exit: 3,
    code: "store.misplaced",
    names: ["path"],
    spec: () => mistake({ path: "/dev/null/lake/{topic}" }),
  },
  {
    name: "a path below /proc",
    exit: 3,
    code: "store.io",
    names: ["path"],
    spec: () => mistake({ path: "/proc/lake/{topic}" }),
  },
  {
    name: "a secret that is missing",
    exit: 2,
    code: "secrets.missing",
    names: ["source.sasl.password", "kafka-password"],
    spec: () =>
      mistake({
        bootstrap: served.sasl,
        source: `sasl = { mechanism = "PLAIN", username = "bob", password = { secret = "kafka-password" } }`,
      }),
  },
  {
    name: "a certificate file that is missing",
    exit: 2,
    code: "secrets.missing",
    names: ["source.tls.ca", "/no/such/ca.crt"],
    spec: () => mistake({ bootstrap: served.tls, source: tls("/no/such/ca.crt") }),
  },
  {
    name: "a certificate that is none",
    exit: 2,
    code: "net.tls_material",
    names: ["source.tls"],
    spec: () => mistake({ bootstrap: served.tls, source: tls("/etc/hostname") }),
  },
];

function refused(ended: Ended, exit: number, code: string, names: readonly string[]): void {
  const line = ended.failure?.line ?? ended.output;
  expect({ exit: ended.code, code: ended.failure?.code, line }).toMatchObject({ exit, code });
  for (const name of names) expect(line).toContain(name);
  // One line for people, not a stack.
  expect(ended.output).not.toMatch(/\n\s+at .*\.ts/);
  expect(ended.output).not.toContain("internal.bug");
}

/** Without the mistake, in the same folder, everything lands. */
async function nothingLost(spec: PipelineSpec, folder: string): Promise<void> {
  const right = { served: spec.served, topics: [topic], group: `g-${topic}` };
  const p = pipeline(right, folder);
  await catchUp(p);
}

describe.skipIf(MAIN === null)("refused at the start", () => {
  for (const c of CASES) {
    test(
      c.name,
      async () => {
        const spec = c.spec();
        const ended = await stream(pipeline(spec)).ended();
        refused(ended, c.exit, c.code, c.names);
      },
      LIMIT,
    );
  }

  test(
    "HTTP on the port",
    async () => {
      const web = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("hello") });
      const spec = mistake({ bootstrap: [`127.0.0.1:${web.port}`], source: QUICK });
      const ended = await stream(pipeline(spec)).ended();
      await web.stop(true);
      refused(ended, 3, "kafka.not_kafka", ["source.bootstrap", String(web.port)]);
    },
    LIMIT,
  );

  test(
    "a port that takes connections and never says a word",
    async () => {
      const mute = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
      const spec = mistake({ bootstrap: [`127.0.0.1:${mute.port}`], source: QUICK });
      const ended = await stream(pipeline(spec)).ended();
      mute.stop(true);
      refused(ended, 3, "kafka.unreachable", ["source.bootstrap", String(mute.port)]);
    },
    LIMIT,
  );

  test(
    "no permission on a topic, neither to see nor to read it; none on the group",
    async () => {
      const name = `${topic}-secret`;
      const as = (user: typeof BOB | typeof ALICE, more: Partial<PipelineSpec> = {}) =>
        mistake({
          bootstrap: served.sasl,
          topics: [name],
          source: `${QUICK}\n${sasl(user.user, user.password, user === BOB ? "PLAIN" : "SCRAM-SHA-256")}`,
          ...more,
        });
      await admin(served, "acl", { kind: "TOPIC", name, user: ALICE.user });
      refused(await stream(pipeline(as(BOB))).ended(), 3, "kafka.topic_denied", ["source.topics", name]);
      await admin(served, "acl", { kind: "TOPIC", name, user: BOB.user, operation: "DESCRIBE" });
      refused(await stream(pipeline(as(BOB))).ended(), 3, "kafka.topic_denied", ["source.topics", name]);

      const group = `g-${name}`;
      await admin(served, "acl", { kind: "GROUP", name: group, user: BOB.user });
      refused(await stream(pipeline(as(ALICE, { group }))).ended(), 3, "kafka.group_denied", [
        "source.group",
        group,
      ]);

      await admin(served, "no_acls", { kind: "TOPIC", name });
      await admin(served, "no_acls", { kind: "GROUP", name: group });
      const p = pipeline(as(ALICE, { group }));
      await catchUp(p);
      expect(await landedRows(p.lake)).toBe(10);
    },
    LIMIT,
  );

  test(
    "a path that may not be written, and one on a read-only file system",
    async () => {
      const folder = workFolder();
      const closed = join(folder, "closed");
      mkdirSync(closed);
      chmodSync(closed, 0o500);
      const spec = mistake({ path: `${closed}/lake/{topic}` });
      const p = pipeline(spec, folder);
      const ended = await confined(["stream", "-c", p.config, "--log-format", "json"]);
      refused(ended, 3, "store.denied", ["path", closed]);
      chmodSync(closed, 0o700);
      await nothingLost(spec, folder);
    },
    LIMIT,
  );

  test(
    "the port of [observability] is in use",
    async () => {
      const other = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
      const spec = mistake({ observability: `listen = "127.0.0.1:${other.port}"` });
      const ended = await stream(pipeline(spec)).ended();
      other.stop(true);
      refused(ended, 3, "observability.port_in_use", ["observability.listen", String(other.port)]);
    },
    LIMIT,
  );

  test(
    "TOML that is none, an unknown key, a file that is not there: exit 2 with the line",
    async () => {
      const p = pipeline(mistake({}));
      const good = await Bun.file(p.config).text();
      writeFileSync(p.config, good.replace("[source]", "[source"));
      refused(await stream(p).ended(), 2, "config.syntax", ["twg.toml:6"]);
      writeFileSync(p.config, good.replace("bootstrap =", "bootstrp ="));
      const unknown = await command(["stream", "-c", p.config]);
      expect(unknown.code).toBe(2);
      expect(unknown.output).toContain("config.unknown_key");
      expect(unknown.output).toContain("source.bootstrp");
      expect(unknown.output).toMatch(/did you mean.*bootstrap|bootstrap/);
      const absent = await command(["stream", "-c", `${p.config}.not`]);
      refused(absent, 2, "config.unreadable", ["twg.toml.not"]);
      writeFileSync(p.config, good);
      await catchUp(p);
    },
    LIMIT,
  );

  test(
    "a state folder that cannot be used, or holds garbage, is no reason to stop",
    async () => {
      const p = pipeline(mistake({}));
      writeFileSync(join(p.folder, "state"), "a file where the folder should be");
      await catchUp(p);
      expect(await landedRows(p.lake)).toBe(RECORDS);

      // The binary unpacks its libraries there; run from source nothing is kept.
      const q = pipeline(mistake({}));
      mkdirSync(join(q.folder, "state"));
      await catchUp(q);
      for (const file of new Bun.Glob("**/*").scanSync({
        cwd: join(q.folder, "state"),
        absolute: true,
        onlyFiles: true,
      })) {
        chmodSync(file, 0o600);
        writeFileSync(file, "garbage");
      }
      await feedAll(served, topic, 2, 100);
      await catchUp(q);
      const ends = await endsOf(served, topic);
      expect(await landedRows(q.lake)).toBe(Object.values(ends).reduce((a, b) => a + b, 0));
    },
    LIMIT,
  );
});

async function landedRows(lake: string): Promise<number> {
  const { countLanded } = await import("../../scripts/torture/landed.ts");
  const landed = await countLanded(lake);
  expect(landed.doubled).toBe(0);
  return landed.rows;
}
