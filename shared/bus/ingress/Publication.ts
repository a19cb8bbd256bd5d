/** Confirms publications with JetStream; most jobs are published without waiting for its answer. */
import { errors, type Msg } from "@nats-io/nats-core"
import * as Metrics from "../../telemetry/Metrics.ts"
import type { OpenJob } from "./OpenJob.ts"
import type { Outbox } from "../../nats/Outbox.ts"

/**
 * `stored`: now in the stream. `duplicate`: it was already. `full`: the stream has no room. `nobody`: the stream has no leader.
 * `unknown`: no clear answer.
 */
export type Verdict = "stored" | "duplicate" | "full" | "nobody" | "unknown"

export const verdictIn = (answer: Msg): { readonly verdict: Verdict; readonly detail: string } => {
  const { duplicate, error, seq } = answer.json<{
    readonly seq?: number
    readonly duplicate?: boolean
    readonly error?: { readonly description?: string }
  }>()
  if (error === undefined && seq !== undefined) {
    return { verdict: duplicate === true ? "duplicate" : "stored", detail: "" }
  }
  const detail = error?.description ?? "an answer without a sequence"
  return { verdict: /maximum (messages|bytes)/.test(detail) ? "full" : "unknown", detail }
}

type Message = ReturnType<OpenJob["toMessage"]>

const ask = async (outbox: Outbox, [subject, payload, headers]: Message, timeoutMs: number): Promise<Verdict> => {
  try {
    return verdictIn(await outbox.request(subject, payload, headers, timeoutMs)).verdict
  } catch (cause) {
    // no answer, no connection
    return cause instanceof errors.RequestError && cause.isNoResponders() ? "nobody" : "unknown"
  }
}

/** Publishes a job again under the same message id and waits for the answer. Never fails. */
export const confirm = async (outbox: Outbox, message: Message, timeoutMs: number): Promise<Verdict> => {
  const verdict = await ask(outbox, message, timeoutMs)
  if (verdict !== "stored" && verdict !== "duplicate") Metrics.update(Metrics.jetStreamErrors("confirm"), 1)
  return verdict
}
