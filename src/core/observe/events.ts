/**
 * The catalogue of telemetry events: every log line and counter comes from one of these. An event has a stable
 * name, typed fields and no secrets. The telemetry adapter renders each as a structured log line and updates
 * metrics; code elsewhere never formats a log line.
 */
import type { FailureWire } from "../failure/failure.ts";

export type TwgEvent =
  | { readonly e: "pipeline.started"; readonly pipeline: string; readonly version: string; readonly lanes: number }
  | { readonly e: "pipeline.stopped"; readonly rows: number; readonly reason: string }
  | { readonly e: "failure"; readonly scope: string; readonly failure: FailureWire };
