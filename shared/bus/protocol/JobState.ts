/**
 * The states of a job at ingress, as a pure function: a state and an event give the next state and the commands to run. The
 * README of `shared/bus` has a diagram.
 *
 * An event that cannot happen in a state changes nothing. Ingress answers messages from a superseded attempt or worker with
 * `no` or `cancel`, so that a worker that wakes from a freeze stops its stale work.
 */
import type { JobError } from "../../contract/JobError.ts"
import { AnswerLost, PoisonJob, QueueTimeout, Unavailable, WorkerLost } from "../../contract/JobError.ts"
import type { Redispatch } from "./Frame.ts"
import { maxAttempts, maxLosses } from "./Timings.ts"

/** `losses` counts the workers that disappeared while they ran the job: see `maxLosses`. */
export type JobState =
  /** Waits for its turn at ingress. */
  | { readonly state: "Queued" }
  /** In the stream, as far as ingress knows; unclaimed. */
  | { readonly state: "Published"; readonly attempt: number; readonly losses: number }
  /** A worker runs it; the client has received nothing. */
  | {
    readonly state: "Claimed"
    readonly attempt: number
    readonly losses: number
    readonly worker: string
    readonly redispatch: Redispatch
  }
  /** The client has received bytes: no further attempt is possible. */
  | { readonly state: "Streaming"; readonly attempt: number; readonly losses: number; readonly worker: string }
  | { readonly state: "Done" }
  | { readonly state: "Failed" }
  | { readonly state: "Cancelled" }

export type JobEvent =
  /** The window of its pool has room. */
  | { readonly event: "admitted" }
  | {
    readonly event: "claimed"
    readonly attempt: number
    readonly worker: string
    readonly redispatch: Redispatch
    readonly awaits: boolean
  }
  /** Bytes were written to the client's socket. */
  | { readonly event: "flushed" }
  /** The worker is dead or frozen, or has given up the job. `mayBePoison`: the job may be the cause, so the loss counts. */
  | { readonly event: "workerLost"; readonly mayBePoison: boolean }
  /** The attempt was probably delivered to a dead worker, or not all workers read its version; see `Publications`. */
  | { readonly event: "overtaken" }
  /** A frame is missing. */
  | { readonly event: "frameLost" }
  | { readonly event: "ended" }
  | { readonly event: "failed"; readonly error: JobError }
  | { readonly event: "clientGone" }
  /** No worker has claimed the job in time. `retryAfterMs`: when the queue may be shorter. */
  | { readonly event: "deadline"; readonly retryAfterMs: number }
  /** The ingress shuts down. */
  | { readonly event: "shutdown" }

export type Command =
  | { readonly command: "publish"; readonly attempt: number }
  /** Accepts a claim that waits for `go`. */
  | { readonly command: "go"; readonly redispatch: Redispatch }
  /** Tells the worker that sent this event that it does not have the job. */
  | { readonly command: "refuse" }
  /** Tells the worker to stop an attempt. `isMoved`: another attempt follows. */
  | { readonly command: "cancel"; readonly worker: string; readonly attempt: number; readonly isMoved: boolean }
  /** Drops the answer so far: another attempt starts. */
  | { readonly command: "restart" }
  | { readonly command: "fail"; readonly error: JobError }

export interface Step {
  readonly next: JobState
  readonly commands: ReadonlyArray<Command>
}

type Claimed = Extract<JobState, { readonly state: "Claimed" }>
type Running = Extract<JobState, { readonly worker: string }>
type Claiming = Extract<JobEvent, { readonly event: "claimed" }>

export const initial: JobState = { state: "Queued" }

export const attemptOf = (state: JobState): number | undefined => "attempt" in state ? state.attempt : undefined
export const isOver = (state: JobState): boolean =>
  state.state === "Done" || state.state === "Failed" || state.state === "Cancelled"

const nothing: ReadonlyArray<Command> = []
const stay = (state: JobState): Step => ({ next: state, commands: nothing })
const refuse = (state: JobState): Step => ({ next: state, commands: [{ command: "refuse" }] })
const done: Step = { next: { state: "Done" }, commands: nothing }
const fail = (error: JobError, ...before: ReadonlyArray<Command>): Step => ({
  next: { state: "Failed" },
  commands: [...before, { command: "fail", error }]
})
const cancel = ({ attempt, worker }: Running, isMoved = false): Command => ({
  command: "cancel",
  worker,
  attempt,
  isMoved
})
const cancelled = (...commands: ReadonlyArray<Command>): Step => ({ next: { state: "Cancelled" }, commands })

export const step = (state: JobState, event: JobEvent): Step => {
  switch (state.state) {
    case "Queued":
      return event.event === "admitted" ? publish(1, 0) : wait(state, event)

    case "Published":
      switch (event.event) {
        case "claimed":
          return event.attempt === state.attempt ? claim(event, state.losses) : refuse(state)
        // if the worker that holds this attempt wakes, ingress refuses its claim to the old attempt
        case "overtaken":
          return state.attempt < maxAttempts ? publish(state.attempt + 1, state.losses) : stay(state)
        // a worker that claims a cancelled job learns of the cancellation from the answer
        default:
          return wait(state, event)
      }

    case "Claimed":
      switch (event.event) {
        case "claimed":
          return isOwn(state, event)
            ? claim(
              state.redispatch === "mayHaveBeenSent" ? { ...event, redispatch: "mayHaveBeenSent" } : event,
              state.losses
            )
            : refuse(state)
        case "flushed": {
          const { attempt, losses, worker } = state
          return { next: { state: "Streaming", attempt, losses, worker }, commands: nothing }
        }
        case "workerLost": {
          const losses = lossesAfter(state, event)
          return losses >= maxLosses
            ? fail(new PoisonJob(), cancel(state))
            : again({ ...state, losses }, new WorkerLost())
        }
        case "frameLost":
          return again(state, new AnswerLost())
        default:
          return run(state, event)
      }

    case "Streaming":
      switch (event.event) {
        case "claimed":
          return isOwn(state, event) ? stay(state) : refuse(state)
        case "workerLost":
          return fail(lossesAfter(state, event) >= maxLosses ? new PoisonJob() : new WorkerLost(), cancel(state))
        case "frameLost":
          return fail(new AnswerLost(), cancel(state))
        default:
          return run(state, event)
      }

    case "Done":
    case "Failed":
    case "Cancelled":
      return event.event === "claimed" ? refuse(state) : stay(state)
  }
}

/** Events that mean the same in every state without a worker. */
const wait = (state: JobState, event: JobEvent): Step => {
  switch (event.event) {
    case "clientGone":
      return cancelled()
    case "deadline":
      return fail(new QueueTimeout({ retryAfterMs: event.retryAfterMs }))
    case "shutdown":
      return fail(Unavailable.briefly())
    case "failed":
      return fail(event.error)
    default:
      return stay(state)
  }
}

/** Events that mean the same in every state with a worker. */
const run = (state: Running, event: JobEvent): Step => {
  switch (event.event) {
    case "ended":
      return done
    case "failed":
      return fail(event.error)
    case "clientGone":
      return cancelled(cancel(state))
    case "shutdown":
      return fail(Unavailable.briefly(), cancel(state))
    default:
      return stay(state)
  }
}

const isOwn = ({ attempt, worker }: Running, claim: Claiming): boolean =>
  claim.attempt === attempt && claim.worker === worker

const publish = (attempt: number, losses: number): Step => ({
  next: { state: "Published", attempt, losses },
  commands: [{ command: "publish", attempt }]
})

const claim = (event: Claiming, losses: number): Step => ({
  next: { state: "Claimed", attempt: event.attempt, losses, worker: event.worker, redispatch: event.redispatch },
  commands: event.awaits ? [{ command: "go", redispatch: event.redispatch }] : nothing
})

const lossesAfter = (
  { losses }: { readonly losses: number },
  { mayBePoison }: Extract<JobEvent, { readonly event: "workerLost" }>
): number => mayBePoison ? losses + 1 : losses

/**
 * Starts another attempt if that is safe: the client has received nothing, and either the worker has not called a provider or a
 * second call is harmless. This state can be trusted, because a worker makes no paid call before ingress has set
 * `mayHaveBeenSent` and answered `go`.
 */
const again = (state: Claimed, error: JobError): Step => {
  if (state.redispatch === "mayHaveBeenSent" || state.attempt >= maxAttempts) return fail(error, cancel(state))
  const attempt = state.attempt + 1
  return {
    next: { state: "Published", attempt, losses: state.losses },
    commands: [cancel(state, true), { command: "restart" }, { command: "publish", attempt }]
  }
}
