/**
 * The states of a job as ingress sees them, as one function without side effects: a state and an event give the next
 * state and what has to be done. README.md beside this file draws it.
 *
 * An event that cannot happen in a state changes nothing. Whatever comes from an attempt or a worker that is no longer
 * the job's own is answered with `no` or `cancel`, so that a worker which wakes from a freeze stops its stale work.
 */
import type { JobError } from "../../contract/JobError.ts"
import { AnswerLost, PoisonJob, QueueTimeout, Unavailable, WorkerLost } from "../../contract/JobError.ts"
import type { Redispatch } from "./Frame.ts"
import { maxAttempts, maxLosses } from "./Timings.ts"

/** `losses` counts the workers that were lost over the job without a word: see `maxLosses`. */
export type JobState =
  /** Waits at ingress for its turn. */
  | { readonly state: "Queued" }
  /** Is in the stream, or believed to be; no worker has claimed it. */
  | { readonly state: "Published"; readonly attempt: number; readonly losses: number }
  /** A worker has it; nothing has reached the client. */
  | {
    readonly state: "Claimed"
    readonly attempt: number
    readonly losses: number
    readonly worker: string
    readonly redispatch: Redispatch
  }
  /** Bytes have reached the client: from here on there is no other attempt. */
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
  /** Bytes were handed to the client's socket. */
  | { readonly event: "flushed" }
  /** The worker is dead, frozen, or does not know the job. `announced`: it said so itself, as one does that drains. */
  | { readonly event: "workerLost"; readonly announced: boolean }
  /** Jobs that were published later have been claimed before it. */
  | { readonly event: "overtaken" }
  /** A frame is missing. */
  | { readonly event: "frameLost" }
  | { readonly event: "ended" }
  | { readonly event: "failed"; readonly error: JobError }
  | { readonly event: "clientGone" }
  /** Nobody took it in time; whoever comes again after so long may find a shorter queue. */
  | { readonly event: "deadline"; readonly retryAfterMs: number }
  /** The ingress is going away for good. */
  | { readonly event: "shutdown" }

export type Command =
  | { readonly command: "publish"; readonly attempt: number }
  /** Agrees to the claim. */
  | { readonly command: "go"; readonly redispatch: Redispatch }
  /** Tells the sender of this event that the job is not its own. */
  | { readonly command: "refuse" }
  /** Tells the worker of an attempt to stop. */
  | { readonly command: "cancel"; readonly worker: string; readonly attempt: number }
  /** Forgets what has come of the answer: another attempt begins. */
  | { readonly command: "restart" }
  | { readonly command: "fail"; readonly error: JobError }

export interface Step {
  readonly next: JobState
  readonly commands: ReadonlyArray<Command>
}

export const initial: JobState = { state: "Queued" }

const nothing: ReadonlyArray<Command> = []
const stay = (state: JobState): Step => ({ next: state, commands: nothing })
const done: Step = { next: { state: "Done" }, commands: nothing }
const fail = (error: JobError, ...before: ReadonlyArray<Command>): Step => ({
  next: { state: "Failed" },
  commands: [...before, { command: "fail", error }]
})
const cancel = (state: { readonly worker: string; readonly attempt: number }): Command => ({
  command: "cancel",
  worker: state.worker,
  attempt: state.attempt
})
const cancelled = (...commands: ReadonlyArray<Command>): Step => ({ next: { state: "Cancelled" }, commands })

/** A hint for clients that were turned away because this ingress goes, in milliseconds. */
const retryAfterMs = 1_000

export const step = (state: JobState, event: JobEvent): Step => {
  switch (state.state) {
    case "Queued":
      switch (event.event) {
        case "admitted":
          return publish(1, 0)
        case "clientGone":
          return cancelled()
        case "deadline":
          return fail(new QueueTimeout({ retryAfterMs: event.retryAfterMs }))
        case "shutdown":
          return fail(new Unavailable({ retryAfterMs }))
        case "failed":
          return fail(event.error)
        default:
          return stay(state)
      }

    case "Published":
      switch (event.event) {
        case "claimed":
          return event.attempt === state.attempt
            ? claim(event, state.losses)
            : { next: state, commands: [{ command: "refuse" }] }
        // whoever has it finds, should it wake, that its attempt is not the present one
        case "overtaken":
          return state.attempt < maxAttempts ? publish(state.attempt + 1, state.losses) : stay(state)
        // its worker, when there is one, learns it from the answer to its claim
        case "clientGone":
          return cancelled()
        case "deadline":
          return fail(new QueueTimeout({ retryAfterMs: event.retryAfterMs }))
        case "shutdown":
          return fail(new Unavailable({ retryAfterMs }))
        case "failed":
          return fail(event.error)
        default:
          return stay(state)
      }

    case "Claimed":
      switch (event.event) {
        case "claimed":
          return event.attempt === state.attempt && event.worker === state.worker
            ? claim(
              state.redispatch === "mayHaveBeenSent" ? { ...event, redispatch: "mayHaveBeenSent" } : event,
              state.losses
            )
            : { next: state, commands: [{ command: "refuse" }] }
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
        case "ended":
          return done
        case "failed":
          return fail(event.error)
        case "clientGone":
          return cancelled(cancel(state))
        case "shutdown":
          return fail(new Unavailable({ retryAfterMs }), cancel(state))
        default:
          return stay(state)
      }

    case "Streaming":
      switch (event.event) {
        case "claimed":
          return event.attempt === state.attempt && event.worker === state.worker
            ? stay(state)
            : { next: state, commands: [{ command: "refuse" }] }
        case "workerLost":
          return fail(lossesAfter(state, event) >= maxLosses ? new PoisonJob() : new WorkerLost(), cancel(state))
        case "frameLost":
          return fail(new AnswerLost(), cancel(state))
        case "ended":
          return done
        case "failed":
          return fail(event.error)
        case "clientGone":
          return cancelled(cancel(state))
        case "shutdown":
          return fail(new Unavailable({ retryAfterMs }), cancel(state))
        default:
          return stay(state)
      }

    case "Done":
    case "Failed":
    case "Cancelled":
      return event.event === "claimed" ? { next: state, commands: [{ command: "refuse" }] } : stay(state)
  }
}

const publish = (attempt: number, losses: number): Step => ({
  next: { state: "Published", attempt, losses },
  commands: [{ command: "publish", attempt }]
})

const claim = (event: Extract<JobEvent, { readonly event: "claimed" }>, losses: number): Step => ({
  next: { state: "Claimed", attempt: event.attempt, losses, worker: event.worker, redispatch: event.redispatch },
  commands: event.awaits ? [{ command: "go", redispatch: event.redispatch }] : nothing
})

type Claimed = Extract<JobState, { readonly state: "Claimed" }>

const lossesAfter = (
  { losses }: { readonly losses: number },
  { announced }: Extract<JobEvent, { readonly event: "workerLost" }>
): number => announced ? losses : losses + 1

/**
 * Another attempt where that is safe: nothing has reached the client, and a second call harms nobody or none was made, which
 * no worker does without the `go` that makes it `mayHaveBeenSent` here.
 */
const again = (state: Claimed, error: JobError): Step => {
  if (state.redispatch === "mayHaveBeenSent" || state.attempt >= maxAttempts) return fail(error, cancel(state))
  const attempt = state.attempt + 1
  return {
    next: { state: "Published", attempt, losses: state.losses },
    commands: [cancel(state), { command: "restart" }, { command: "publish", attempt }]
  }
}
