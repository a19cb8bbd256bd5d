/** Where the traces of a local start go: to its console, over loopback, with a token of their own. */
import { randomBytes } from "node:crypto"
import { consoleService } from "./WebApp.ts"

/** How often services send what there is, in milliseconds: somebody may be waiting to see it. */
const everyMs = 1_000

/** What each service is told of it, by its name. The console does not trace itself. */
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
