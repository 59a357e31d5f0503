/** Keys and profile of Amazon's services: the options of every component that signs requests, and what goes together. */
import * as z from "zod";
import { secretString } from "./option-types.ts";

/** Names in the examples: secrets are called `<secrets>-access-key` and the like. */
export interface AwsWords {
  readonly secrets: string;
  readonly profile: string;
}

export function awsCredentials({ secrets, profile }: AwsWords) {
  return {
    access_key_id: secretString()
      .optional()
      .describe("Access key.")
      .meta({
        examples: [{ secret: `${secrets}-access-key` }],
        why: "Without it the usual chain: environment, profile, web identity, container and instance metadata; renewed before it ends.",
      }),
    secret_access_key: secretString()
      .optional()
      .describe("Secret of `access_key_id`.")
      .meta({ examples: [{ secret: `${secrets}-secret-key` }] }),
    session_token: secretString()
      .optional()
      .describe("Session token, where the access key is a temporary one.")
      .meta({ examples: [{ secret: `${secrets}-session-token` }] }),
    profile: z
      .string()
      .min(1)
      .max(128)
      .optional()
      .describe("Profile of the shared AWS configuration files, in place of keys.")
      .meta({ examples: [profile] }),
  };
}

type AwsOption = keyof ReturnType<typeof awsCredentials>;

export interface AwsProblem {
  readonly path: AwsOption;
  readonly message: string;
  readonly allowed: string;
}

export function awsProblems(o: { readonly [K in AwsOption]?: unknown }): AwsProblem[] {
  const out: AwsProblem[] = [];
  const keys = o.access_key_id !== undefined;
  if (keys !== (o.secret_access_key !== undefined)) {
    out.push({
      path: keys ? "secret_access_key" : "access_key_id",
      message: "the two keys go together",
      allowed: "both `access_key_id` and `secret_access_key`, or neither",
    });
  }
  if (o.session_token !== undefined && !keys) {
    out.push({
      path: "session_token",
      message: "it belongs to an access key",
      allowed: "only with `access_key_id`",
    });
  }
  if (o.profile !== undefined && keys) {
    out.push({ path: "profile", message: "keys are given", allowed: "either `profile` or the keys" });
  }
  return out;
}
