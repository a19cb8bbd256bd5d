/**
 * Which transitions of a job's state machine (`JobState.ts`) a run has reached. A transition is a state, an event, the next state
 * and the commands; all that exist are found by trying every state with every event.
 */
import type { Redispatch } from "../../shared/bus/protocol/Frame.ts"
import { type Command, type JobEvent, type JobState, type Step, step } from "../../shared/bus/protocol/JobState.ts"
import { maxAttempts, maxLosses } from "../../shared/bus/protocol/Timings.ts"
import { InternalError } from "../../shared/contract/JobError.ts"

declare global {
  /** Set here, called by `ObserveSteps.ts`. */
  var onJobStep: ((state: JobState, event: JobEvent, made: Step) => void) | undefined
}

/** How often each transition was made. */
export type Counts = Record<string, number>

const nameOf = (command: Command): string => {
  switch (command.command) {
    case "fail":
      return command.error._tag === "InternalError" ? "fail" : `fail with ${command.error._tag}`
    case "cancel":
      return command.isMoved ? "cancel the moved attempt" : "cancel"
    default:
      return command.command
  }
}

const isFailed = ({ event }: JobEvent) => event === "failed"

const transitionOf = (state: JobState, event: JobEvent, { commands, next }: Step): string => {
  // without the worker's error
  const names = isFailed(event) ? commands.map(({ command }) => command) : commands.map(nameOf)
  return `${state.state}: ${event.event} → ${next.state}${names.length === 0 ? "" : `, ${names.join(", ")}`}`
}

/** Counts what happens in this process from now on. */
export const countTransitions = (): Counts => {
  const counts: Counts = {}
  globalThis.onJobStep = (state, event, made) => {
    const transition = transitionOf(state, event, made)
    counts[transition] = (counts[transition] ?? 0) + 1
  }
  return counts
}

const promises: ReadonlyArray<Redispatch> = ["idempotent", "unsent", "mayHaveBeenSent"]
const attempts = [1, maxAttempts]
const losses = Array.from({ length: maxLosses }, (_, lost) => lost)

const states: ReadonlyArray<JobState> = [
  { state: "Queued" },
  ...attempts.flatMap((attempt) =>
    losses.flatMap((lost): ReadonlyArray<JobState> => [
      { state: "Published", attempt, losses: lost },
      ...promises.map((redispatch) =>
        ({ state: "Claimed", attempt, losses: lost, worker: "own", redispatch }) as const
      ),
      { state: "Streaming", attempt, losses: lost, worker: "own" }
    ])
  ),
  { state: "Done" },
  { state: "Failed" },
  { state: "Cancelled" }
]

/** All variants of each event. */
const events: { readonly [Name in JobEvent["event"]]: ReadonlyArray<Extract<JobEvent, { readonly event: Name }>> } = {
  admitted: [{ event: "admitted" }],
  claimed: [...attempts, 0].flatMap((attempt) =>
    ["own", "other"].flatMap((worker) =>
      promises.flatMap((redispatch) =>
        [true, false].map((awaits) => ({ event: "claimed", attempt, worker, redispatch, awaits }) as const)
      )
    )
  ),
  flushed: [{ event: "flushed" }],
  workerLost: [{ event: "workerLost", mayBePoison: false }, { event: "workerLost", mayBePoison: true }],
  overtaken: [{ event: "overtaken" }],
  frameLost: [{ event: "frameLost" }],
  ended: [{ event: "ended" }],
  failed: [{ event: "failed", error: new InternalError() }],
  clientGone: [{ event: "clientGone" }],
  deadline: [{ event: "deadline", retryAfterMs: 1 }],
  shutdown: [{ event: "shutdown" }]
}

/** Every transition that the state machine has. */
const all = (): ReadonlySet<string> =>
  new Set(
    states.flatMap((state) =>
      Object.values(events).flat().map((event) => transitionOf(state, event, step(state, event)))
    )
  )

/** Events that ingress never raises in these states, and why. */
const unreachable: ReadonlyArray<
  readonly [event: JobEvent["event"], states: ReadonlyArray<JobState["state"]>, reason: string]
> = [
  ["admitted", ["Published", "Claimed", "Streaming", "Done", "Failed", "Cancelled"], "only queued jobs get a turn"],
  ["overtaken", ["Queued", "Claimed", "Streaming", "Done", "Failed", "Cancelled"], "only unclaimed jobs are overtaken"],
  ["deadline", ["Claimed", "Streaming", "Done", "Failed", "Cancelled"], "only unclaimed jobs have a deadline"],
  ["claimed", ["Queued", "Done", "Failed", "Cancelled"], "a job that is not published or over has no attempt to claim"],
  [
    "flushed",
    ["Queued", "Published", "Streaming", "Done", "Failed", "Cancelled"],
    "the first bytes are flushed once, after they came and while ingress knows the job"
  ],
  ["workerLost", ["Queued", "Published", "Done", "Failed", "Cancelled"], "a job without a worker has none to lose"],
  [
    "frameLost",
    ["Queued", "Published", "Done", "Failed", "Cancelled"],
    "frames are compared while a worker has the job"
  ],
  [
    "ended",
    ["Queued", "Published", "Done", "Failed", "Cancelled"],
    "the first frame of an attempt also claims the job"
  ],
  ["failed", ["Queued", "Done", "Failed", "Cancelled"], "only the stream or a worker fails a job"],
  ["shutdown", ["Done", "Failed", "Cancelled"], "a job that is over is forgotten"],
  ["clientGone", ["Done", "Failed", "Cancelled"], "a job that is over is forgotten"]
]

/** Single transitions that are unreachable, or too rare for a long run. Neither is an error. */
const exempt: ReadonlyArray<readonly [transition: string, reason: string]> = [
  [
    "Claimed: frameLost → Published, cancel the moved attempt, restart, publish",
    "a worker would have to give up 64 MiB"
  ],
  ["Claimed: frameLost → Failed, cancel, fail with AnswerLost", "a worker would have to give up 64 MiB"],
  ["Streaming: frameLost → Failed, cancel, fail with AnswerLost", "a worker would have to give up 64 MiB"],
  ["Queued: shutdown → Failed, fail with Unavailable", "an ingress would have to be deployed while its queue is full"],
  ["Published: claimed → Published, refuse", "ingress refuses a frame of another attempt before it makes a step"],
  ["Claimed: claimed → Claimed, refuse", "ingress refuses a claim of another worker before it makes a step"],
  ["Streaming: claimed → Streaming, refuse", "ingress refuses a claim of another worker before it makes a step"],
  ["Published: overtaken → Published", "all attempts of one job would have to be overtaken"],
  ["Claimed: workerLost → Failed, cancel, fail with PoisonJob", "two workers would have to die before one job answers"],
  ["Streaming: workerLost → Failed, cancel, fail with PoisonJob", "two workers would have to die during one job"]
]

const isUnreachable = (transition: string): boolean =>
  unreachable.some(([event, states]) => states.some((state) => transition.startsWith(`${state}: ${event} `)))

const isExempt = (transition: string): boolean => exempt.some(([name]) => name === transition)

export interface Coverage {
  /** The number of reachable transitions that were made, and of all reachable ones. */
  readonly reached: number
  readonly reachable: number
  /** Reachable transitions that were never made. */
  readonly missing: ReadonlyArray<string>
  /** Transitions that were made although the table calls them unreachable. */
  readonly surprising: ReadonlyArray<string>
}

export const coverageOf = (counts: Counts): Coverage => {
  const reachable = [...all()].filter((transition) => !isUnreachable(transition) && !isExempt(transition))
  const missing = reachable.filter((transition) => counts[transition] === undefined)
  return {
    reached: reachable.length - missing.length,
    reachable: reachable.length,
    missing,
    surprising: Object.keys(counts).filter(isUnreachable)
  }
}
