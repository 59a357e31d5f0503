/** Framing of a topic whose values have no envelope, and whose keys are not decoded. */
import { framingOf } from "../../../src/core/codecs/framing/framing.ts";

export const bareValues = (_topic: string, part: "key" | "value") =>
  part === "key"
    ? null
    : framingOf("none", { part, protobuf: false, maxPayloadBytes: 1 << 20, codecs: { zlib: () => {} } });
