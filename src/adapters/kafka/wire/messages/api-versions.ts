/** ApiVersions (key 18): what the broker speaks. First request of every connection. KIP-35, KIP-511, KIP-584. */
import { type ApiSpec, field, structs } from "../spec.ts";

export const apiVersions: ApiSpec = {
  key: 18,
  request: {
    versions: [0, 5],
    flexible: 3,
    fields: [
      field("clientSoftwareName", "string", 3),
      field("clientSoftwareVersion", "string", 3),
      field("clusterId", "string", 5, { nullable: 5, preset: null }),
      field("nodeId", "int32", 5, { preset: -1 }),
    ],
  },
  response: {
    versions: [0, 5],
    flexible: 3,
    fields: [
      field("errorCode", "int16", 0),
      structs("apiKeys", 0, [
        field("apiKey", "int16", 0),
        field("minVersion", "int16", 0),
        field("maxVersion", "int16", 0),
      ]),
      field("throttleTimeMs", "int32", 1, { mayBeCut: true }),
      structs(
        "supportedFeatures",
        3,
        [field("name", "string", 3), field("minVersion", "int16", 3), field("maxVersion", "int16", 3)],
        { tag: 0, tagged: 3 },
      ),
      field("finalizedFeaturesEpoch", "int64", 3, { tag: 1, tagged: 3, preset: -1n }),
      structs(
        "finalizedFeatures",
        3,
        [
          field("name", "string", 3),
          field("maxVersionLevel", "int16", 3),
          field("minVersionLevel", "int16", 3),
        ],
        { tag: 2, tagged: 3 },
      ),
      field("zkMigrationReady", "bool", 3, { tag: 3, tagged: 3, preset: false }),
    ],
  },
};

export interface ApiVersionsRequest {
  readonly clientSoftwareName: string;
  readonly clientSoftwareVersion: string;
  readonly clusterId: string | null;
  readonly nodeId: number;
}

export interface ApiKeyRange {
  readonly apiKey: number;
  readonly minVersion: number;
  readonly maxVersion: number;
}

export interface ApiVersionsResponse {
  readonly errorCode: number;
  readonly apiKeys: readonly ApiKeyRange[];
  readonly throttleTimeMs: number;
  readonly supportedFeatures: readonly {
    readonly name: string;
    readonly minVersion: number;
    readonly maxVersion: number;
  }[];
  readonly finalizedFeaturesEpoch: bigint;
  readonly finalizedFeatures: readonly {
    readonly name: string;
    readonly maxVersionLevel: number;
    readonly minVersionLevel: number;
  }[];
  readonly zkMigrationReady: boolean;
}
