/** A worker's slots, adapted to the strain of its process: on virtual time, with processes whose strain follows from their jobs. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Latch } from "effect"
import { TestClock } from "effect/testing"
import { adapt, UsedMemory } from "../../../shared/worker/AdaptSlots.ts"
import { SlotLimit, type Strain } from "../../../shared/worker/SlotLimit.ts"

interface Process {
  readonly slots: number
  /** How many jobs want to run at this second. */
  readonly demand: (second: number) => number
  /** The part of the running jobs that ends in a second. */
  readonly ends: number
  readonly strain: (inFlight: number, second: number) => Strain
}

/** Runs a process for this many seconds; returns its slots and its jobs after each. */
const run = ({ demand, ends, slots, strain }: Process, seconds: number) => {
  const limit = new SlotLimit(slots)
  let inFlight = 0
  return Array.from({ length: seconds }, (_, second) => {
    inFlight -= Math.ceil(ends * inFlight)
    inFlight = Math.max(inFlight, Math.min(limit.current, demand(second)))
    limit.update(strain(inFlight, second), inFlight, 1_000 * second)
    return { slots: limit.current, inFlight }
  })
}

const none: Strain = { lateMs: 2, memory: 0.3 }
/** A loop that keeps up until it does not, as an event loop does. */
const keepsUpTo = (most: number) => (inFlight: number): Strain => ({ ...none, lateMs: inFlight <= most ? 10 : 400 })
/** Each job takes the same memory. */
const memoryFor = (most: number) => (inFlight: number): Strain => ({ ...none, memory: inFlight / most })
const always = (strain: Strain) => () => strain
const steady = (count: number) => () => count
const hour = 3_600

interface Row {
  readonly name: string
  readonly process: Process
  readonly seconds: number
  /** The slots at the end, at least and at most. */
  readonly ends: readonly [number, number]
  /** How many times growth turned into shrinking, at most. */
  readonly turns: number
}

const plain = { slots: 1_280, demand: steady(1_000), ends: 0.5, strain: always(none) }
// the right values: what the process in the row can carry, less a tenth for the last step
const rows: ReadonlyArray<Row> = [
  {
    name: "keeps all slots under a load that it carries",
    process: plain,
    seconds: hour,
    ends: [1_280, 1_280],
    turns: 0
  },
  {
    name: "keeps all slots while some timers are late, as in garbage collection",
    process: { ...plain, strain: (_, second) => second % 10 === 0 ? { lateMs: 900, memory: 0.5 } : none },
    seconds: hour,
    ends: [1_280, 1_280],
    turns: 0
  },
  {
    name: "keeps all slots while timers are late for less than three seconds, as at the start of a thousand streams",
    process: { ...plain, strain: (_, second) => second < 3 ? { lateMs: 900, memory: 0.5 } : none },
    seconds: 60,
    ends: [1_280, 1_280],
    turns: 0
  },
  {
    name: "settles at what its event loop carries",
    process: { ...plain, strain: keepsUpTo(600) },
    seconds: hour,
    ends: [480, 600],
    turns: 12
  },
  {
    name: "settles where memory is neither short nor plenty, and stays there",
    process: { ...plain, strain: memoryFor(1_000) },
    seconds: hour,
    ends: [750, 850],
    turns: 0
  },
  {
    name: "has at least 64 slots, however strained it is",
    process: { ...plain, strain: always({ lateMs: 5_000, memory: 1 }) },
    seconds: 60,
    ends: [64, 64],
    turns: 0
  },
  {
    name: "keeps slots that are few",
    process: { ...plain, slots: 64, strain: always({ lateMs: 5_000, memory: 1 }) },
    seconds: 60,
    ends: [64, 64],
    turns: 0
  },
  {
    name: "grows back after a neighbour has taken the processor for a minute",
    process: { ...plain, strain: (_, second) => second < 60 ? { ...none, lateMs: 800 } : none },
    seconds: 300,
    ends: [1_280, 1_280],
    turns: 0
  },
  {
    name: "stays a tenth below jobs that do not end, instead of shrinking for nothing",
    process: { ...plain, ends: 0, strain: always({ lateMs: 800, memory: 0.9 }) },
    seconds: 600,
    ends: [900, 900],
    turns: 0
  }
]

/** How often the slots became fewer after they had become more. */
const turnsOf = (slots: ReadonlyArray<number>): number => {
  let grew = false
  let turns = 0
  for (const [index, now] of slots.entries()) {
    const before = slots[index - 1] ?? now
    if (now < before && grew) turns++
    if (now !== before) grew = now > before
  }
  return turns
}

describe("a worker", () => {
  it.each(rows)("$name", ({ ends: [least, most], process, seconds, turns }) => {
    const taken = run(process, seconds).map(({ slots }) => slots)
    const last = taken.at(-1)!
    assert.isTrue(last >= least && last <= most, `${last} slots at the end`)
    assert.isAtMost(turnsOf(taken), turns)
    for (const [index, slots] of taken.entries()) {
      const before = taken[index - 1] ?? process.slots
      assert.isAtLeast(slots, Math.floor(0.9 * before), `more than a tenth in second ${index}`)
      assert.isAtLeast(slots, Math.min(64, process.slots))
    }
  })

  it("swings less and less often under a load that it cannot carry, by no more than a fifth", () => {
    const taken = run({ ...plain, strain: keepsUpTo(600) }, 2 * hour).map(({ slots }) => slots)
    const settled = taken.slice(60)
    assert.isAtLeast(Math.min(...settled), 0.8 * 600)
    assert.isAtMost(Math.max(...settled), 1.1 * 600)
    assert.isAtMost(turnsOf(taken.slice(hour)), 6)
  })

  it.effect("shrinks while its memory is short, with a second between two steps, and rests while it is idle", () =>
    Effect.gen(function*() {
      let memory = 0.9
      const limit = new SlotLimit(1_280)
      const working = Latch.makeUnsafe(true)
      yield* adapt(limit, { inFlight: () => 0, working }).pipe(Effect.provideService(UsedMemory, () => memory))
      yield* TestClock.adjust("999 millis")
      assert.strictEqual(limit.current, 1_280)
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(limit.current, 1_152)
      yield* TestClock.adjust("1 seconds")
      assert.strictEqual(limit.current, 1_037)
      working.closeUnsafe()
      yield* TestClock.adjust("10 seconds")
      assert.isAtLeast(limit.current, 933)
      memory = 0.1
      working.openUnsafe()
      yield* TestClock.adjust("1 minutes")
      assert.strictEqual(limit.current, 1_280)
    }))
})
