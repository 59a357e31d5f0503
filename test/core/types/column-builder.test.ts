/** Goal: many rows of one value are what as many rows would be. Method: both ways, behind other values. */
import { expect, test } from "bun:test";
import { BytesBuilder } from "../../../src/core/types/column-builder.ts";

test("a value many times is the value in each row", () => {
  for (const length of [0, 1, 5, 300])
    for (const times of [0, 1, 2, 3, 1000]) {
      const value = Uint8Array.from({ length }, (_, i) => i + 1);
      const [once, each] = [0, 1].map(() => new BytesBuilder({ id: "binary" }));
      for (const b of [once!, each!]) {
        b.reserve(times + 2);
        b.push(Uint8Array.of(9, 9));
      }
      once!.pushTimes(value, times);
      for (let i = 0; i < times; i++) each!.push(value);
      for (const b of [once!, each!]) b.push(Uint8Array.of(8));
      expect(once!.finish()).toEqual(each!.finish());
    }
});
