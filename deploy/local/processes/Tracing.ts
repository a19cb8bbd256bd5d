/** Sends the traces of a local start to its console, over loopback, with their own token. */
import { randomBytes } from "node:crypto"
import { consoleService } from "./WebApp.ts"

/** The export interval in milliseconds, short because a user may be waiting for the trace. */
const everyMs = 1_000

/** The variables for each service. The console does not trace itself. */
export const makeTracing = (consolePort: number): (service: string) => Readonly<Record<string, string>> => {
  const token = randomBytes(24).toString("base64url")
  return (service) =>
    service === consoleService ? { CONSOLE_OTLP_TOKEN: token } : {
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `http://127.0.0.1:${consolePort}/otlp/v1/traces`,
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: `authorization=Bearer%20${token}`,
      OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: "none",
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_BSP_SCHEDULE_DELAY: String(everyMs)
    }
}
