/** Confirms publications with JetStream; most jobs are published without waiting for its answer. */
import { errors, type Msg } from "@nats-io/nats-core"
import * as Metrics from "../../telemetry/Metrics.ts"
import type { OpenJob } from "./OpenJob.ts"
import { encodeHeaders, type Outbox } from "../../nats/Outbox.ts"
import * as Subjects from "../protocol/Subjects.ts"

/**
 * `stored`: now in the stream. `duplicate`: it was already. `full`: the stream or its server has no room. `leaderless`: the stream
 * has no leader. `unknown`: no clear answer.
 */
export type Verdict = "stored" | "duplicate" | "full" | "leaderless" | "unknown"

export interface Answer {
  readonly verdict: Verdict
  readonly detail: string
  /** Where the stream has the message. */
  readonly sequence?: number | undefined
}

export const verdictIn = (answer: Msg): Answer => {
  const { duplicate, error, seq } = answer.json<{
    readonly seq?: number
    readonly duplicate?: boolean
    readonly error?: { readonly description?: string }
  }>()
  if (error === undefined && seq !== undefined) {
    return { verdict: duplicate === true ? "duplicate" : "stored", detail: "", sequence: seq }
  }
  const detail = error?.description ?? "an answer without a sequence"
  return { verdict: /maximum (messages|bytes)|insufficient resources/.test(detail) ? "full" : "unknown", detail }
}

type Message = ReturnType<OpenJob["toMessage"]>

const ask = async (outbox: Outbox, [subject, payload, headers]: Message, timeoutMs: number): Promise<Answer> => {
  try {
    return verdictIn(await outbox.request(subject, payload, headers, timeoutMs))
  } catch (cause) {
    // no answer, no connection
    const verdict = cause instanceof errors.RequestError && cause.isNoResponders() ? "leaderless" : "unknown"
    return { verdict, detail: String(cause) }
  }
}

/** Publishes a job again under the same message id and waits for the answer. Never fails. */
export const confirm = async (outbox: Outbox, message: Message, timeoutMs: number): Promise<Answer> => {
  const answer = await ask(outbox, message, timeoutMs)
  const { verdict } = answer
  if (verdict !== "stored" && verdict !== "duplicate") Metrics.update(Metrics.jetStreamErrors("confirm"), 1)
  return answer
}

/** Up to where in its stream a pool's queue has been delivered; `undefined` if its leader does not answer. Never fails. */
export const deliveredUpTo = async (
  outbox: Outbox,
  { request: { pool, workload }, version }: OpenJob,
  timeoutMs: number
): Promise<number | undefined> => {
  try {
    const subject = Subjects.queueStateSubject(workload, pool, version)
    const answer = await outbox.request(subject, new Uint8Array(0), encodeHeaders({}), timeoutMs)
    return answer.json<{ readonly delivered?: { readonly stream_seq?: number } }>().delivered?.stream_seq
  } catch {
    return undefined
  }
}
