/**
 * Where secrets come from: a folder with a file for each (as container platforms mount them), then the
 * environment. The folder wins: a mounted file is the newer and the more private of the two, and can change
 * under a running process, which an environment cannot.
 */
import { join } from "node:path";
import { SECRET_NAME } from "../../core/config/option-types.ts";
import type { SecretBackend, SecretSources } from "../../core/config/resolve.ts";
import { readSecretFile, secretLookup } from "./text-file.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Links are followed (Kubernetes keeps `name -> ..data/name`), but only to places within the folder. */
export function directoryBackend(dir: string): SecretBackend {
  return {
    name: "directory",
    place: (secret) => join(dir, secret),
    async lookup(secret) {
      // The configuration allows no other names; this holds the line for callers that did not ask it.
      if (!SECRET_NAME.test(secret)) return { state: "unreadable", reason: "is not a name of a secret" };
      return readSecretFile(join(dir, secret), dir);
    },
  };
}

/** `kafka-password` is `TWG_SECRET_KAFKA_PASSWORD`. */
export function environmentName(secret: string): string {
  return `TWG_SECRET_${secret.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_")}`;
}

export function environmentBackend(environment: Environment): SecretBackend {
  return {
    name: "environment",
    place: environmentName,
    async lookup(secret) {
      const value = environment[environmentName(secret)];
      return value === undefined ? { state: "missing" } : secretLookup(value);
    },
  };
}

export function secretSources(dir: string, environment: Environment): SecretSources {
  return {
    backends: [directoryBackend(dir), environmentBackend(environment)],
    readFile: (path) => readSecretFile(path, null),
  };
}
