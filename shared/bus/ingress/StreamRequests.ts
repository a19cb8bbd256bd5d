/** Requests to JetStream about published jobs. Most jobs need none: a claim by a worker confirms them sooner. */
import { errors, type Msg } from "@nats-io/nats-core"
import * as Metrics from "../../telemetry/Metrics.ts"
import type { OpenJob } from "./OpenJob.ts"
import { encodeHeaders, type Outbox } from "../../nats/Outbox.ts"
import * as Subjects from "../protocol/Subjects.ts"
import type { Version } from "../protocol/Subjects.ts"

/**
 * `stored`: the message is now in the stream. `duplicate`: it was there already. `full`: the stream or its server has no room.
 * `leaderless`: the stream has no leader. `unknown`: no clear answer.
 */
export type Verdict = "stored" | "duplicate" | "full" | "leaderless" | "unknown"

export interface Answer {
  readonly verdict: Verdict
  readonly detail: string
  /** The message's sequence in the stream. */
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

/** The state of a pool's queue. */
interface QueueState {
  /** The stream sequence up to which it has been delivered. */
  readonly delivered?: { readonly stream_seq?: number }
  /** The number of pull requests that wait for a job. */
  readonly num_waiting?: number
}

/** The state of a pool's queue in one version; `undefined` if its leader does not answer. Never fails. */
export const queueState = async (
  outbox: Outbox,
  { pool, workload }: OpenJob["request"],
  version: Version,
  timeoutMs: number
): Promise<QueueState | undefined> => {
  try {
    const subject = Subjects.queueStateSubject(workload, pool, version)
    return (await outbox.request(subject, new Uint8Array(0), encodeHeaders({}), timeoutMs)).json<QueueState>()
  } catch {
    return undefined
  }
}
