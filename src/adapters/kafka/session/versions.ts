/** Which version of a request to send: the highest that the broker and we both speak. */
import { Failure } from "../../../core/failure/failure.ts";
import type { ApiKeyRange } from "../wire/messages/api-versions.ts";
import { API_RANGE, APIS, type ApiName } from "../wire/protocol.ts";

export interface VersionRange {
  readonly min: number;
  readonly max: number;
}

export type BrokerVersions = ReadonlyMap<number, VersionRange>;

export function brokerVersions(keys: readonly ApiKeyRange[]): BrokerVersions {
  return new Map(keys.map((k) => [k.apiKey, { min: k.minVersion, max: k.maxVersion }]));
}

/** `ceiling`: do not go above, for example where only topic names are known and later versions want ids. */
export function chooseVersion(api: ApiName, broker: BrokerVersions, at: string, ceiling?: number): number {
  const ours = API_RANGE[api];
  const ourMax = ceiling === undefined ? ours.max : Math.min(ours.max, ceiling);
  const theirs = broker.get(APIS[api].key);
  if (theirs === undefined) {
    throw new Failure("kafka.unsupported_version", `${at} does not offer ${api}`, {
      at,
      hint: `This client speaks ${api} ${ours.min} to ${ours.max}`,
    });
  }
  const version = Math.min(ourMax, theirs.max);
  if (version < Math.max(ours.min, theirs.min)) {
    throw new Failure(
      "kafka.unsupported_version",
      `${at} offers ${api} ${theirs.min} to ${theirs.max}, this client speaks ${ours.min} to ${ourMax}`,
      { at, hint: "The broker is too old or too new for this client" },
    );
  }
  return version;
}

/** What to do after an ApiVersions response (KIP-511). */
export type VersionsVerdict =
  | { readonly kind: "use"; readonly versions: BrokerVersions }
  | { readonly kind: "again"; readonly version: number }
  | { readonly kind: "refused" };

const UNSUPPORTED_VERSION = 35;
const API_VERSIONS_KEY = 18;

/**
 * A broker that does not know the version answers 35 in the form of v0: an empty list (try 0), its range of
 * ApiVersions alone (try its highest, if that is lower than what we sent: else we would ask for ever), or everything.
 */
export function judgeVersions(
  errorCode: number,
  keys: readonly ApiKeyRange[],
  sent: number,
): VersionsVerdict {
  if (errorCode === 0) return { kind: "use", versions: brokerVersions(keys) };
  if (errorCode !== UNSUPPORTED_VERSION) return { kind: "refused" };
  if (keys.length === 0) return sent > 0 ? { kind: "again", version: 0 } : { kind: "refused" };
  if (keys.length > 1) return { kind: "use", versions: brokerVersions(keys) };
  const only = keys[0]!;
  const next = Math.max(0, only.maxVersion);
  return only.apiKey === API_VERSIONS_KEY && next < sent
    ? { kind: "again", version: next }
    : { kind: "refused" };
}
