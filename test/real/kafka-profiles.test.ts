/**
 * Goal: the version tables of the test broker are those of the releases that they are named after. Method: each real
 * broker's ApiVersions answer beside the table; the brokers come from TWG_REAL_KAFKA.
 */
import { expect, test } from "bun:test";
import { APIS, type ApiName, decodeResponse, encodeRequest } from "../../src/adapters/kafka/wire/protocol.ts";
import { PROFILES, type ProfileName } from "../brokers/kafka/profiles.ts";

const servers = JSON.parse(process.env["TWG_REAL_KAFKA"] ?? "{}") as Record<string, { plain: string[] }>;
const PROFILE_OF: Readonly<Record<string, ProfileName>> = { "3.9": "3.9", "4.": "4.x" };
if (Object.keys(servers).length === 0)
  console.error("SKIP: no real Kafka brokers (TWG_REAL_KAFKA): version tables were not compared with any");

/** One request on a connection of its own; the answer without its size. */
async function ask(address: string, request: Uint8Array): Promise<Uint8Array> {
  const [hostname = "", port] = address.split(":");
  const answer = Promise.withResolvers<Uint8Array>();
  let bytes = new Uint8Array(0);
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      data(_, chunk) {
        bytes = Uint8Array.from([...bytes, ...chunk]);
        const whole = bytes.length >= 4 && bytes.length >= 4 + new DataView(bytes.buffer).getInt32(0);
        if (whole) answer.resolve(bytes.slice(4));
      },
      close: () => answer.reject(new Error("closed")),
      error: (_, e) => answer.reject(e),
    },
  });
  socket.write(request);
  const found = await answer.promise;
  socket.end();
  return found;
}

for (const [version, { plain }] of Object.entries(servers)) {
  const name = Object.entries(PROFILE_OF).find(([start]) => version.startsWith(start))?.[1];
  test.skipIf(name === undefined)(`Kafka ${version} speaks what the profile ${name} says`, async () => {
    const { versions } = PROFILES[name!];
    const body = { clientSoftwareName: "twg", clientSoftwareVersion: "0" };
    const bytes = await ask(plain[0]!, encodeRequest("ApiVersions", 3, 7, "twg", body));
    const { apiKeys } = decodeResponse("ApiVersions", 3, bytes);
    const names = Object.keys(APIS) as ApiName[];
    const text = (range: readonly [number, number] | undefined) => range?.join(" to ") ?? "none";
    const ours = names.map((api) => `${api} ${text(versions[api])}`);
    const theirs = names.map((api) => {
      const found = apiKeys.find((k) => k.apiKey === APIS[api].key);
      return `${api} ${text(found && [found.minVersion, found.maxVersion])}`;
    });
    expect(ours).toEqual(theirs);
  });
}
