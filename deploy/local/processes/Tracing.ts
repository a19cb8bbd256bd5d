/**
 * Sends the traces of a local start to its console, over loopback, with their own token. The console shows single requests, so
 * under load it gets only some of the traces, besides those of requests that fail or are slow.
 */
import { randomBytes } from "node:crypto"
import type { Environment } from "./Environment.ts"
import { consoleService } from "./WebApp.ts"

/** The export interval in milliseconds, short because a user may be waiting for the trace. */
const everyMs = 1_000

/** The user's choice, if any; otherwise ingress chooses, and the workers follow. */
const samplerOf = (service: string, environment: Environment): Readonly<Record<string, string>> =>
  service === "ingress" && environment["OTEL_TRACES_SAMPLER"] === undefined
    ? { OTEL_TRACES_SAMPLER: "ratelimiting" }
    : {}

/** The variables for each service, beside those of the user's environment. The console does not trace itself. */
export const makeTracing = (
  consolePort: number,
  environment: Environment
): (service: string) => Readonly<Record<string, string>> => {
  const token = randomBytes(24).toString("base64url")
  return (service) =>
    service === consoleService ? { CONSOLE_OTLP_TOKEN: token } : {
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `http://127.0.0.1:${consolePort}/otlp/v1/traces`,
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: `authorization=Bearer%20${token}`,
      OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: "none",
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_BSP_SCHEDULE_DELAY: String(everyMs),
      ...samplerOf(service, environment)
    }
}
