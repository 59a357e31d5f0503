/** The hash functions of SASL from node:crypto. */
import { createHash, createHmac, pbkdf2Sync } from "node:crypto";
import type { SaslCrypto } from "../../core/sasl/mechanism.ts";

const copy = (b: Buffer): Uint8Array => new Uint8Array(b);

export const systemSaslCrypto: SaslCrypto = {
  hash: (name, input) => copy(createHash(name).update(input).digest()),
  hmac: (name, key, input) => copy(createHmac(name, key).update(input).digest()),
  pbkdf2: (name, password, salt, iterations, bytes) =>
    copy(pbkdf2Sync(password, salt, iterations, bytes, name)),
};
