/** Columns through the producer into a topic's bytes: its batches as a broker keeps them. */
import { Delivery } from "../../src/adapters/kafka/producer/delivery.ts";
import { ProduceMachine } from "../../src/adapters/kafka/producer/machine.ts";
import { rulesOf } from "../../src/adapters/kafka/producer/options.ts";
import type { RecordColumns } from "../../src/adapters/kafka/wire/records/record-writer.ts";
import { placeBatch } from "../brokers/kafka/batch-builder.ts";
import { codecs } from "./records.ts";

export interface Log {
  readonly bytes: Uint8Array;
  readonly next: bigint;
}

export function produced(columns: RecordColumns): Log {
  const rules = { ...rulesOf({}), lingerMs: 0, batchBytes: 4096 };
  const machine = new ProduceMachine(rules, codecs, { spoiled: () => {}, settled: () => {}, pause: () => 0 });
  machine.identify({ id: 4n, epoch: 1 });
  const queue = machine.queue("copy", 0);
  const delivery = new Delivery();
  for (let row = 0; row < columns.rows; row++) machine.append(queue, columns, row, delivery, 0, 0);
  delivery.complete();
  const parts: Uint8Array[] = [];
  let next = 0n;
  for (;;) {
    const [batch] = machine.take([...machine.active()], 0);
    if (batch === undefined) break;
    const bytes = batch.bytes!.slice();
    placeBatch(bytes, next, 1);
    parts.push(bytes);
    const answer = {
      errorCode: 0,
      baseOffset: next,
      logStartOffset: 0n,
      errorMessage: null,
      recordErrors: [],
    };
    machine.answered(batch, answer, 0);
    next += BigInt(batch.count);
  }
  return { bytes: Uint8Array.from(Buffer.concat(parts)), next };
}
