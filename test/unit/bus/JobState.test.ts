/** A job's state machine: every event in every state, and properties that hold for any order of events. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import type { Redispatch } from "../../../shared/bus/protocol/Frame.ts"
import type { Command, JobEvent, JobState, Step } from "../../../shared/bus/protocol/JobState.ts"
import { initial, step } from "../../../shared/bus/protocol/JobState.ts"
import { maxAttempts, maxLosses } from "../../../shared/bus/protocol/Timings.ts"
import { InternalError } from "../../../shared/contract/JobError.ts"

const claimed = (
  attempt: number,
  worker: string,
  awaits: boolean,
  redispatch: Redispatch = "idempotent"
): JobEvent => ({ event: "claimed", attempt, worker, redispatch, awaits })

const events = {
  "admitted": { event: "admitted" },
  "claimed": claimed(1, "a", false),
  "claimed, waiting": claimed(1, "a", true),
  "claimed by another": claimed(1, "b", false),
  "claimed for another attempt": claimed(2, "a", false),
  "committed": claimed(1, "a", false, "mayHaveBeenSent"),
  "flushed": { event: "flushed" },
  "overtaken": { event: "overtaken" },
  "workerLost": { event: "workerLost", mayBePoison: true },
  "workerLost, returned": { event: "workerLost", mayBePoison: false },
  "frameLost": { event: "frameLost" },
  "ended": { event: "ended" },
  "failed": { event: "failed", error: new InternalError() },
  "clientGone": { event: "clientGone" },
  "deadline": { event: "deadline", retryAfterMs: 1_000 },
  "shutdown": { event: "shutdown" }
} satisfies Record<string, JobEvent>

const states = {
  "Queued": initial,
  "Published": { state: "Published", attempt: 1, losses: 0 },
  "Claimed, repeatable": { state: "Claimed", attempt: 1, losses: 0, worker: "a", redispatch: "idempotent" },
  "Claimed, not yet sent": { state: "Claimed", attempt: 1, losses: 0, worker: "a", redispatch: "unsent" },
  "Claimed, not repeatable": { state: "Claimed", attempt: 1, losses: 0, worker: "a", redispatch: "mayHaveBeenSent" },
  "Streaming": { state: "Streaming", attempt: 1, losses: 0, worker: "a" },
  "Done": { state: "Done" },
  "Failed": { state: "Failed" },
  "Cancelled": { state: "Cancelled" }
} satisfies Record<string, JobState>

const stateText = (state: JobState): string => {
  switch (state.state) {
    case "Published":
      return `Published ${state.attempt}`
    case "Claimed":
      return `Claimed ${state.attempt} by ${state.worker} (${state.redispatch})`
    case "Streaming":
      return `Streaming ${state.attempt} by ${state.worker}`
    default:
      return state.state
  }
}

const commandText = (command: Command): string => {
  switch (command.command) {
    case "publish":
      return `publish ${command.attempt}`
    case "go":
      return `go (${command.redispatch})`
    case "cancel":
      return `cancel ${command.attempt} at ${command.worker}`
    case "fail":
      return `fail ${command.error._tag}`
    default:
      return command.command
  }
}

const text = ({ commands, next }: Step): string => [stateText(next), ...commands.map(commandText)].join(", ")

/** The transition for each event in each state; an event without an entry changes nothing and issues no command. */
const table: Record<keyof typeof states, Partial<Record<keyof typeof events, string>>> = {
  "Queued": {
    "admitted": "Published 1, publish 1",
    "failed": "Failed, fail InternalError",
    "clientGone": "Cancelled",
    "deadline": "Failed, fail QueueTimeout",
    "shutdown": "Failed, fail Unavailable"
  },
  "Published": {
    "claimed": "Claimed 1 by a (idempotent)",
    "claimed, waiting": "Claimed 1 by a (idempotent), go (idempotent)",
    "claimed by another": "Claimed 1 by b (idempotent)",
    "committed": "Claimed 1 by a (mayHaveBeenSent)",
    "claimed for another attempt": "Published 1, refuse",
    "overtaken": "Published 2, publish 2",
    "failed": "Failed, fail InternalError",
    "clientGone": "Cancelled",
    "deadline": "Failed, fail QueueTimeout",
    "shutdown": "Failed, fail Unavailable"
  },
  "Claimed, repeatable": {
    "claimed, waiting": "Claimed 1 by a (idempotent), go (idempotent)",
    "committed": "Claimed 1 by a (mayHaveBeenSent)",
    "claimed by another": "Claimed 1 by a (idempotent), refuse",
    "claimed for another attempt": "Claimed 1 by a (idempotent), refuse",
    "flushed": "Streaming 1 by a",
    "workerLost": "Published 2, cancel 1 at a, restart, publish 2",
    "workerLost, returned": "Published 2, cancel 1 at a, restart, publish 2",
    "frameLost": "Published 2, cancel 1 at a, restart, publish 2",
    "ended": "Done",
    "failed": "Failed, fail InternalError",
    "clientGone": "Cancelled, cancel 1 at a",
    "shutdown": "Failed, cancel 1 at a, fail Unavailable"
  },
  "Claimed, not yet sent": {
    "claimed": "Claimed 1 by a (idempotent)",
    "claimed, waiting": "Claimed 1 by a (idempotent), go (idempotent)",
    "committed": "Claimed 1 by a (mayHaveBeenSent)",
    "claimed by another": "Claimed 1 by a (unsent), refuse",
    "claimed for another attempt": "Claimed 1 by a (unsent), refuse",
    "flushed": "Streaming 1 by a",
    "workerLost": "Published 2, cancel 1 at a, restart, publish 2",
    "workerLost, returned": "Published 2, cancel 1 at a, restart, publish 2",
    "frameLost": "Published 2, cancel 1 at a, restart, publish 2",
    "ended": "Done",
    "failed": "Failed, fail InternalError",
    "clientGone": "Cancelled, cancel 1 at a",
    "shutdown": "Failed, cancel 1 at a, fail Unavailable"
  },
  "Claimed, not repeatable": {
    "claimed, waiting": "Claimed 1 by a (mayHaveBeenSent), go (mayHaveBeenSent)",
    "claimed by another": "Claimed 1 by a (mayHaveBeenSent), refuse",
    "claimed for another attempt": "Claimed 1 by a (mayHaveBeenSent), refuse",
    "flushed": "Streaming 1 by a",
    "workerLost": "Failed, cancel 1 at a, fail WorkerLost",
    "workerLost, returned": "Failed, cancel 1 at a, fail WorkerLost",
    "frameLost": "Failed, cancel 1 at a, fail AnswerLost",
    "ended": "Done",
    "failed": "Failed, fail InternalError",
    "clientGone": "Cancelled, cancel 1 at a",
    "shutdown": "Failed, cancel 1 at a, fail Unavailable"
  },
  "Streaming": {
    "claimed by another": "Streaming 1 by a, refuse",
    "claimed for another attempt": "Streaming 1 by a, refuse",
    "workerLost": "Failed, cancel 1 at a, fail WorkerLost",
    "workerLost, returned": "Failed, cancel 1 at a, fail WorkerLost",
    "frameLost": "Failed, cancel 1 at a, fail AnswerLost",
    "ended": "Done",
    "failed": "Failed, fail InternalError",
    "clientGone": "Cancelled, cancel 1 at a",
    "shutdown": "Failed, cancel 1 at a, fail Unavailable"
  },
  "Done": {
    "claimed": "Done, refuse",
    "claimed, waiting": "Done, refuse",
    "claimed by another": "Done, refuse",
    "committed": "Done, refuse",
    "claimed for another attempt": "Done, refuse"
  },
  "Failed": {
    "claimed": "Failed, refuse",
    "claimed, waiting": "Failed, refuse",
    "claimed by another": "Failed, refuse",
    "committed": "Failed, refuse",
    "claimed for another attempt": "Failed, refuse"
  },
  "Cancelled": {
    "claimed": "Cancelled, refuse",
    "claimed, waiting": "Cancelled, refuse",
    "claimed by another": "Cancelled, refuse",
    "committed": "Cancelled, refuse",
    "claimed for another attempt": "Cancelled, refuse"
  }
}

describe.each(Object.entries(states))("%s", (name, state) => {
  it.each(Object.entries(events))("on %s", (event, value) => {
    const row: Partial<Record<string, string>> = table[name as keyof typeof states]
    assert.strictEqual(text(step(state, value)), row[event] ?? stateText(state))
  })
})

it("a job fails after its last attempt", () => {
  const waiting: JobState = { state: "Published", attempt: maxAttempts, losses: 0 }
  assert.deepStrictEqual(step(waiting, events.overtaken), { next: waiting, commands: [] })
  const last: JobState = { state: "Claimed", attempt: maxAttempts, losses: 0, worker: "a", redispatch: "idempotent" }
  assert.strictEqual(text(step(last, events.workerLost)), `Failed, cancel ${maxAttempts} at a, fail WorkerLost`)
  assert.strictEqual(text(step(last, events.frameLost)), `Failed, cancel ${maxAttempts} at a, fail AnswerLost`)
})

/** The last step of a job after these events. */
const after = (...happened: ReadonlyArray<JobEvent>): Step =>
  happened.reduce<Step>((before, event) => step(before.next, event), { next: initial, commands: [] })

describe("a job whose workers are lost", () => {
  const { admitted, flushed, overtaken, workerLost } = events
  const returned = events["workerLost, returned"]

  it("fails after the second loss that counts", () => {
    assert.strictEqual(
      text(after(admitted, claimed(1, "a", false), workerLost, claimed(2, "b", true), workerLost)),
      "Failed, cancel 2 at b, fail PoisonJob"
    )
  })

  it("fails after the second loss even if that worker had started to answer or to call a provider", () => {
    const once = [admitted, claimed(1, "a", false), workerLost]
    assert.strictEqual(
      text(after(...once, claimed(2, "b", true), flushed, workerLost)),
      "Failed, cancel 2 at b, fail PoisonJob"
    )
    assert.strictEqual(
      text(after(...once, claimed(2, "b", true, "mayHaveBeenSent"), workerLost)),
      "Failed, cancel 2 at b, fail PoisonJob"
    )
  })

  it("is redispatched if the worker returned it or had not started", () => {
    assert.strictEqual(
      text(after(admitted, claimed(1, "a", false), returned, claimed(2, "b", true), workerLost)),
      "Published 3, cancel 2 at b, restart, publish 3"
    )
    assert.strictEqual(
      text(after(admitted, overtaken, claimed(2, "b", true), workerLost)),
      "Published 3, cancel 2 at b, restart, publish 3"
    )
  })
})

/** Events of a random walk. Repeated entries are more frequent, so that a walk gets far before it ends. */
const eventNames = [
  ...["admitted", "admitted", "admitted", "claim", "claim", "claim", "claim", "claim", "claim", "claim"] as const,
  ...["workerLost", "workerLost", "workerLost", "frameLost", "frameLost", "flushed", "stale claim"] as const,
  ...["overtaken"] as const,
  ...["ended", "failed", "clientGone", "deadline", "shutdown"] as const
]
const RandomEvent = Schema.Struct({
  name: Schema.Literals(eventNames),
  worker: Schema.Literals(["a", "b"]),
  care: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 4 })),
  awaits: Schema.Boolean
})
type RandomEvent = typeof RandomEvent.Type

const carefulClaims: ReadonlyArray<Redispatch> = ["mayHaveBeenSent", "unsent"]

const eventOf = (state: JobState, { awaits, care, name, worker }: RandomEvent): JobEvent => {
  if (name !== "claim" && name !== "stale claim") return events[name]
  const attempt = ("attempt" in state ? state.attempt : 1) - (name === "claim" ? 0 : 1)
  return { event: "claimed", attempt, worker, redispatch: carefulClaims[care] ?? "idempotent", awaits }
}

const walk = (randomEvents: ReadonlyArray<RandomEvent>) => {
  const steps: Array<Step & { readonly before: JobState; readonly event: JobEvent }> = []
  let state = initial
  for (const randomEvent of randomEvents) {
    const event = eventOf(state, randomEvent)
    const taken = step(state, event)
    steps.push({ ...taken, before: state, event })
    state = taken.next
  }
  return steps
}
const isFinal = ({ state }: JobState) => state === "Done" || state === "Failed" || state === "Cancelled"

describe("with events in any order", () => {
  const sequences = Arbitrary.array(Arbitrary.schema(RandomEvent), { maxLength: 40 })
  const options = { arbitrary: { runs: 1_000, size: 100 } }

  it.prop("a job leaves no final state", [sequences], ([sequence]) => {
    for (const { before, next } of walk(sequence)) {
      if (isFinal(before)) assert.deepStrictEqual(next, before)
    }
  }, options)

  it.prop("a job fails at most once, exactly when it becomes Failed", [sequences], ([sequence]) => {
    for (const { before, commands, next } of walk(sequence)) {
      const fails = commands.filter(({ command }) => command === "fail").length
      assert.strictEqual(fails, !isFinal(before) && next.state === "Failed" ? 1 : 0)
    }
  }, options)

  it.prop("a job is published at most once per attempt, in order, and never beyond the last attempt", [sequences], ([
    sequence
  ]) => {
    const published = walk(sequence).flatMap(({ commands }) =>
      commands.flatMap((command) => command.command === "publish" ? [command.attempt] : [])
    )
    assert.isAtMost(published.length, maxAttempts)
    assert.deepStrictEqual(published, published.map((_, index) => index + 1))
  }, options)

  it.prop("nothing is published after the second loss that counts", [sequences], ([sequence]) => {
    let losses = 0
    for (const { before, commands, event } of walk(sequence)) {
      if (event.event === "workerLost" && event.mayBePoison && "worker" in before) losses++
      if (losses >= maxLosses) assert.notInclude(commands.map(({ command }) => command), "publish")
    }
  }, options)

  it.prop("nothing is published or restarted once bytes have reached the client", [sequences], ([sequence]) => {
    let streaming = false
    for (const { commands, next } of walk(sequence)) {
      if (streaming) assert.notInclude(commands.map(({ command }) => command), "publish")
      if (streaming) assert.notInclude(commands.map(({ command }) => command), "restart")
      streaming ||= next.state === "Streaming"
    }
  }, options)

  it.prop("nothing is published after a claim that may have been sent to a provider", [sequences], ([sequence]) => {
    let sent = false
    for (const { commands, next } of walk(sequence)) {
      if (sent) assert.notInclude(commands.map(({ command }) => command), "publish")
      sent ||= next.state === "Claimed" && next.redispatch === "mayHaveBeenSent"
    }
  }, options)

  it.prop("a worker that loses its job is cancelled, unless it ended the job itself", [sequences], ([sequence]) => {
    for (const { before, commands, event, next } of walk(sequence)) {
      if (!("worker" in before) || "worker" in next || event.event === "ended" || event.event === "failed") continue
      const isMoved = next.state === "Published"
      assert.deepInclude(commands, { command: "cancel", worker: before.worker, attempt: before.attempt, isMoved })
    }
  }, options)
})
