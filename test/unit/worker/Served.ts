/** A job in a worker, and a record of everything that the worker reports about it. */
import { Effect } from "effect"
import type { JobReply } from "../../../shared/bus/worker/JobReply.ts"
import type { ServedJob } from "../../../shared/bus/worker/JobServer.ts"
import type { PulledJob } from "../../../shared/bus/worker/JobSource.ts"
import { Cancelled, type JobError } from "../../../shared/contract/JobError.ts"
import type { Usage } from "../../../shared/contract/Usage.ts"
import type { UsageEvent } from "../../../shared/usage/UsageEvent.ts"
import type { Metering } from "../../../shared/worker/Meter.ts"

export const pulled: PulledJob = {
  version: 2,
  id: "job",
  attempt: 1,
  reply: "r.chat.ingress.job.1",
  deadline: 60_000,
  operation: "chat.completions",
  model: "ours",
  tenant: "key_1",
  owner: undefined,
  contentType: "application/json",
  headers: undefined,
  traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  bodySize: 2,
  isPlain: false,
  delivery: 1,
  publishedAt: 1_000,
  behind: 0,
  free: () => undefined,
  acknowledge: () => undefined,
  giveBack: () => undefined,
  working: () => undefined,
  join: () => undefined,
  park: () => undefined,
  subject: "jobs.chat.default",
  body: new TextEncoder().encode("{}")
}

/** `said` lists in order what ingress receives, and the outcome of each usage event. */
export const served = (options: {
  readonly pulled?: Partial<PulledJob>
  /** Whether ingress has committed the job. */
  readonly committed?: boolean
  readonly refuses?: boolean
  /** Whether ingress does not answer the claim. */
  readonly isSilent?: boolean
  /** Whether the worker has stopped waiting for that answer. */
  readonly isGivenUp?: boolean
  /** Whether ingress has given the job to another worker. */
  readonly isMoved?: boolean
  readonly startedAt?: number
} = {}) => {
  const said: Array<string> = []
  const events: Array<UsageEvent> = []
  const stored: Array<() => void> = []
  const priced: Array<Usage | undefined> = []
  let over = false
  const reply = {
    isCommitted: options.committed ?? false,
    isMoved: options.isMoved ?? false,
    startedAt: options.startedAt,
    get isOver() {
      return over
    },
    end: () => {
      over = true
      said.push("end")
    },
    fail: (error: JobError) => {
      over = true
      said.push(`fail ${error._tag}`)
    },
    abandon: () => {
      over = true
      said.push("abandon")
    }
  } as unknown as JobReply
  const onStored = () => undefined
  const job: ServedJob = {
    pulled: { ...pulled, ...options.pulled },
    reply,
    takenAt: 100,
    now: () => 350.6,
    hold: () => onStored,
    onWait: () => () => undefined,
    claim: (redispatch) =>
      Effect.suspend(() => {
        said.push(`claim ${redispatch}`)
        if (options.isSilent === true) return Effect.never
        if (options.isGivenUp === true) return Effect.fail(new Cancelled())
        over = options.refuses === true
        return over ? Effect.fail(new Cancelled()) : Effect.void
      }),
    commit: Effect.void,
    body: Effect.succeed(options.pulled?.body ?? pulled.body ?? new Uint8Array(0))
  }
  const metering: Metering = {
    workload: "chat",
    now: () => 5_000,
    cost: (_, usage) => {
      priced.push(usage)
      return usage === undefined ? null : usage.outputTokens / 4
    },
    log: {
      write: (_, event, onStored) => {
        said.push(`event ${event.outcome}${event.error === null ? "" : ` ${event.error}`}`)
        events.push(event)
        stored.push(onStored)
      }
    }
  }
  return { job, metering, said, events, priced, isHeld: () => stored.length === 1 && stored[0] === onStored }
}
