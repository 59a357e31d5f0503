/** DescribeConfigs (key 32): settings of topics and brokers, with where each value comes from. */
import { type ApiSpec, field, list, structs } from "../spec.ts";

/** Values of `resourceType`. */
export const TOPIC_RESOURCE = 2;
/** `configSource` of a value that was set on the topic itself. */
export const TOPIC_CONFIG_SOURCE = 1;

export const describeConfigs: ApiSpec = {
  key: 32,
  request: {
    versions: [1, 4],
    flexible: 4,
    fields: [
      structs("resources", 0, [
        field("resourceType", "int8", 0),
        field("resourceName", "string", 0),
        list("configurationKeys", "string", 0, { nullable: 0 }),
      ]),
      field("includeSynonyms", "bool", 1, { preset: false }),
      field("includeDocumentation", "bool", 3, { preset: false }),
    ],
  },
  response: {
    versions: [1, 4],
    flexible: 4,
    fields: [
      field("throttleTimeMs", "int32", 0),
      structs("results", 0, [
        field("errorCode", "int16", 0),
        field("errorMessage", "string", 0, { nullable: 0 }),
        field("resourceType", "int8", 0),
        field("resourceName", "string", 0),
        structs("configs", 0, [
          field("name", "string", 0),
          field("value", "string", 0, { nullable: 0 }),
          field("readOnly", "bool", 0),
          field("configSource", "int8", 1, { preset: -1 }),
          field("isSensitive", "bool", 0),
          structs("synonyms", 1, [
            field("name", "string", 1),
            field("value", "string", 1, { nullable: 0 }),
            field("source", "int8", 1),
          ]),
          field("configType", "int8", 3, { preset: 0 }),
          field("documentation", "string", 3, { nullable: 0 }),
        ]),
      ]),
    ],
  },
};

export interface DescribeConfigsRequest {
  readonly resources: readonly {
    readonly resourceType: number;
    readonly resourceName: string;
    /** null: all of them. */
    readonly configurationKeys: readonly string[] | null;
  }[];
  readonly includeSynonyms: boolean;
  readonly includeDocumentation: boolean;
}

export interface DescribedConfig {
  readonly name: string;
  /** null: sensitive, or not set. */
  readonly value: string | null;
  readonly readOnly: boolean;
  readonly configSource: number;
  readonly isSensitive: boolean;
  readonly synonyms: readonly {
    readonly name: string;
    readonly value: string | null;
    readonly source: number;
  }[];
  readonly configType: number;
  readonly documentation: string | null;
}

export interface DescribeConfigsResponse {
  readonly throttleTimeMs: number;
  readonly results: readonly {
    readonly errorCode: number;
    readonly errorMessage: string | null;
    readonly resourceType: number;
    readonly resourceName: string;
    readonly configs: readonly DescribedConfig[];
  }[];
}
