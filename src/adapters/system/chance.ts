/** The machine's randomness behind the chance port. Both come from the CSPRNG: SASL nonces are made of them. */
import { randomBytes } from "node:crypto";
import type { Chance } from "../../core/time/chance.ts";

export const systemChance: Chance = {
  next() {
    // 48 bits, the widest that readUIntBE gives; far more than jitter and sampling need.
    return randomBytes(6).readUIntBE(0, 6) / 2 ** 48;
  },
  bytes(n) {
    const out = new Uint8Array(n);
    crypto.getRandomValues(out);
    return out;
  },
};
