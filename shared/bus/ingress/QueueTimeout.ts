/** How long a request may wait in the queue. */
import { Config } from "effect"
import { atLeast } from "../../contract/Fields.ts"

/** Reads `GATEWAY_QUEUE_TIMEOUT_MS`: milliseconds, at least 1, default 30,000. */
export const queueTimeout = Config.schema(atLeast(1), "GATEWAY_QUEUE_TIMEOUT_MS").pipe(Config.withDefault(30_000))
