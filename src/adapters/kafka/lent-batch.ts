/**
 * A batch that its reader has for a while: the arrays are the decoder's, which fills them again for the next one. Who
 * holds on to something must not read another batch's records in it, so when the time is over
 *
 *   - what is asked of the batch or of one of its columns throws kafka.batch_over,
 *   - the arrays that were taken out before are detached: they have no elements any more.
 *
 * Only columns that were looked at are detached. It moves their memory to new arrays and copies nothing.
 */
import { Failure } from "../../core/failure/failure.ts";
import { copyBatch } from "../../core/records/copy-batch.ts";
import type { RawBatch } from "../../core/records/raw-batch.ts";
import type { ColumnName } from "./wire/records/row-builder.ts";

export interface ConsumerBatch extends RawBatch {
  /** The same in memory of its own, for who keeps it. */
  copy(): RawBatch;
}

export interface LentBatch {
  readonly batch: ConsumerBatch;
  /** The time is over. */
  end(): void;
}

const NAMES: readonly ColumnName[] = ["offsets", "timestamps", "key", "value", "headers", "runs"];

/** `detach`: takes a column's arrays from whoever has them. */
export function lend(whole: RawBatch, detach: (column: ColumnName) => void): LentBatch {
  const { stream, span, rows, ingestTs } = whole;
  const seen = new Uint8Array(NAMES.length);
  let over = false;
  const look = <C extends ColumnName>(index: number, name: C): RawBatch[C] => {
    if (over) throw isOver(whole);
    seen[index] = 1;
    return whole[name];
  };
  // Properties of its own, so that spreading and structuredClone see them.
  const columns: RawBatch = {
    stream,
    span,
    rows,
    get offsets() {
      return look(0, "offsets");
    },
    get timestamps() {
      return look(1, "timestamps");
    },
    get key() {
      return look(2, "key");
    },
    get value() {
      return look(3, "value");
    },
    get headers() {
      return look(4, "headers");
    },
    get runs() {
      return look(5, "runs");
    },
    ingestTs,
  };
  // Not enumerable, since a function cannot be cloned.
  const batch: ConsumerBatch = Object.defineProperty(columns as ConsumerBatch, "copy", {
    value: () => copyBatch(columns),
  });
  return {
    batch,
    end() {
      over = true;
      NAMES.forEach((name, index) => {
        if (seen[index] === 0) return;
        detach(name);
        shut(whole[name], whole);
      });
    },
  };
}

/** Nothing can be asked of a column any more; an array is detached already. */
function shut(column: object, whole: RawBatch): void {
  if (ArrayBuffer.isView(column)) return;
  for (const [name, value] of Object.entries(column)) {
    if (typeof value === "object") shut(value, whole);
    Object.defineProperty(column, name, {
      enumerable: true,
      get() {
        throw isOver(whole);
      },
    });
  }
}

function isOver({ stream: { topic, partition }, span }: RawBatch): Failure {
  return new Failure("kafka.batch_over", "the batch was given back when the next one was asked for", {
    at: `${topic}/${partition}@${span.from}`,
    hint: "Read it before that, or keep what its copy() gives",
  });
}
