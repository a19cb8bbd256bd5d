/** Asks JetStream whether it has a job: jobs are published without waiting for its word, and most are claimed at once. */
import * as Metrics from "../telemetry/Metrics.ts"
import type { OpenJob } from "./OpenJob.ts"
import type { Outbox } from "./Outbox.ts"

/** `stored`: it has it now. `duplicate`: it had it already. `full`: the stream has no room. `unknown`: it did not say. */
export type Confirmation = "stored" | "duplicate" | "full" | "unknown"

/** What JetStream says of a publication. */
interface Verdict {
  readonly seq?: number
  readonly duplicate?: boolean
  readonly error?: { readonly description?: string }
}

const confirmationOf = ({ duplicate, error, seq }: Verdict): Confirmation => {
  if (error === undefined && seq !== undefined) return duplicate === true ? "duplicate" : "stored"
  return /maximum (messages|bytes)/.test(error?.description ?? "") ? "full" : "unknown"
}

type Message = ReturnType<OpenJob["toMessage"]>

const ask = async (outbox: Outbox, [subject, payload, headers]: Message, timeoutMs: number): Promise<Confirmation> => {
  try {
    const answer = await outbox.request(subject, payload, headers, timeoutMs)
    return confirmationOf(answer.json<Verdict>())
  } catch {
    // no leader, no answer, no connection
    return "unknown"
  }
}

/** Publishes a job once more under the same message id, this time with a wish for an answer. Never fails. */
export const confirm = async (outbox: Outbox, message: Message, timeoutMs: number): Promise<Confirmation> => {
  const confirmation = await ask(outbox, message, timeoutMs)
  if (confirmation === "full" || confirmation === "unknown") Metrics.update(Metrics.jetStreamErrors("confirm"), 1)
  return confirmation
}
