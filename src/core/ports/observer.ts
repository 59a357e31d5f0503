/** Where telemetry events go. The catalogue is core/observe/events.ts; the adapters turn events into logs and metrics. */
import type { TwgEvent } from "../observe/events.ts";

export interface Observer {
  emit(event: TwgEvent): void;
}
