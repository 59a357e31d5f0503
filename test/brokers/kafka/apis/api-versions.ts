/** ApiVersions (key 18). A client name that is no name is refused since v3 (KIP-511). */
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import type {
  ApiKeyRange,
  ApiVersionsResponse,
} from "../../../../src/adapters/kafka/wire/messages/api-versions.ts";
import { APIS, type ApiName, type Draft } from "../../../../src/adapters/kafka/wire/protocol.ts";
import type { Profile } from "../profiles.ts";
import type { Call } from "./table.ts";

const NAME = /^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$/;

function ranges(profile: Profile): ApiKeyRange[] {
  return (Object.keys(profile.versions) as ApiName[]).map((api) => {
    const [minVersion, maxVersion] = profile.versions[api]!;
    return { apiKey: APIS[api].key, minVersion, maxVersion };
  });
}

export function apiVersions({ broker, request, reply }: Call<"ApiVersions">) {
  const { clientSoftwareName, clientSoftwareVersion } = request.body;
  const named = NAME.test(clientSoftwareName) && NAME.test(clientSoftwareVersion);
  if (request.version >= 3 && !named) return reply({ errorCode: ERROR.INVALID_REQUEST });
  reply({ apiKeys: ranges(broker.profile) });
}

/** Answer to a version that the broker does not know, in v0; null: none, the connection is reset. */
export function refuseVersion(profile: Profile): Draft<ApiVersionsResponse> | null {
  if (profile.refusal === "reset") return null;
  const own = ranges(profile).filter((r) => r.apiKey === APIS.ApiVersions.key);
  return { errorCode: ERROR.UNSUPPORTED_VERSION, apiKeys: profile.refusal === "own" ? own : [] };
}
