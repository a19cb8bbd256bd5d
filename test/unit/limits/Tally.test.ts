/** The record of a key's day has room for any number of models. */
import { assert, it } from "@effect/vitest"
import { dailyTally, type TeamChange } from "../../../shared/usage/Tally.ts"
import { usageEvent } from "../../fixture/nats/UsageEvents.ts"

/** NATS's limit for a message. */
const mostBytes = 1024 * 1024

const team = "team_000000000000"

const changes = (isWithdrawn: boolean): ReadonlyArray<TeamChange> =>
  Array.from({ length: 2_000 }, (_, at) => ({
    event: usageEvent({ id: `job-${at}`, model: `provider/model-${at}`, costUsd: 0.5 }),
    teams: [team],
    isWithdrawn,
    sequence: 1,
    page: 1
  }))

it("the record of a key that uses very many models fits into a message, and counts every request", () => {
  const day = changes(false).reduce(dailyTally.count, dailyTally.zero)
  const text = dailyTally.encode({ upTo: { stream: "s", sequence: 1 }, value: day })
  const counted = day.rows
  assert.isBelow(text.length, mostBytes / 2)
  assert.strictEqual(counted.reduce((sum, { counters }) => sum + counters.requests, 0), 2_000)
  assert.strictEqual(counted.reduce((sum, { counters }) => sum + counters.costUsd, 0), 1_000)
  assert.isTrue(counted.every((row) => row.team === team))
  assert.deepInclude(counted.at(-1), { model: "other", operation: "other", team })

  const withdrawn = changes(true).reduce(dailyTally.count, day).rows
  assert.isTrue(withdrawn.every(({ counters }) => counters.requests === 0 && counters.costUsd === 0))
})
