/** One event of each id counts, the same for every reader, however often it reads the stream. */
import { assert, describe, it } from "@effect/vitest"
import type { Page } from "../../../shared/nats/EventStream.ts"
import { RecentEvents } from "../../../shared/usage/RecentEvents.ts"
import { usageEvent } from "../../fixture/nats/UsageEvents.ts"

const minuteMs = 60_000

/** A page with events of these ids, stored at a minute. */
const page = (sequence: number, minute: number): Page => ({ sequence, storedAt: minute * minuteMs, events: [] })

const read = (recent: RecentEvents, at: Page, ...ids: ReadonlyArray<string>) =>
  recent.read(at, ids.map((id) => usageEvent({ id }))).map(({ event }) => event.id)

const lost = { outcome: "failure", error: "WorkerLost", provider: null, usage: null, costUsd: null } as const

/** Such as `+a` if an event of `a` counts, `+a?` if it is of a lost worker, and `-a?` if that no longer counts. */
const changes = (recent: RecentEvents, at: Page, ...names: ReadonlyArray<string>) =>
  recent.read(at, names.map((name) => usageEvent({ id: name.charAt(0), ...(name.endsWith("?") ? lost : {}) }))).map(
    ({ event: { error, id }, isWithdrawn }) => `${isWithdrawn ? "-" : "+"}${id}${error === null ? "" : "?"}`
  )

describe("an event", () => {
  it("counts once, in whatever pages it is", () => {
    const recent = new RecentEvents("s", 1)
    assert.deepStrictEqual(read(recent, page(1, 0), "a", "b", "a"), ["a", "b"])
    assert.deepStrictEqual(read(recent, page(2, 1), "a", "b"), [])
    assert.deepStrictEqual(read(recent, page(3, 9), "c", "b", "d"), ["c", "d"])
  })

  it("counts again in a page that is read again", () => {
    const recent = new RecentEvents("s", 1)
    for (let time = 0; time < 2; time++) {
      assert.deepStrictEqual(read(recent, page(1, 0), "a"), ["a"])
      assert.deepStrictEqual(read(recent, page(2, 1), "b", "a"), ["b"])
    }
  })

  it("is known to a projector that starts where another remembers from", () => {
    const pages = [[0, "a"], [5, "b"], [11, "c"], [12, "d"], [22, "e"], [23, "f"]] as const
    const recent = new RecentEvents("s", 1)
    for (const [index, [minute, id]] of pages.entries()) read(recent, page(index + 1, minute), id)
    assert.strictEqual(recent.from, 3)
    assert.strictEqual(recent.next, 7)

    const other = new RecentEvents("s", recent.from)
    for (const [index, [minute, id]] of pages.entries()) if (index >= 2) read(other, page(index + 1, minute), id)
    assert.strictEqual(other.from, recent.from)
    assert.deepStrictEqual(read(other, page(7, 23), "c", "d", "e", "f", "g"), ["g"])
  })

  it("of a lost worker counts until that worker's own comes", () => {
    const recent = new RecentEvents("s", 1)
    assert.deepStrictEqual(changes(recent, page(1, 0), "a?", "b?", "c"), ["+a?", "+b?", "+c"])
    assert.deepStrictEqual(changes(recent, page(2, 1), "a?", "c?"), [])
    // twice: a page may be read again
    for (let time = 0; time < 2; time++) {
      assert.deepStrictEqual(changes(recent, page(3, 2), "a", "c"), ["-a?", "+a"])
      assert.deepStrictEqual(changes(recent, page(1, 0), "a?", "b?", "c"), ["+a?", "+b?", "+c"])
    }
    assert.deepStrictEqual(changes(recent, page(4, 3), "a", "a?", "b"), ["-b?", "+b"])
  })

  it("that replaces one of a lost worker is remembered as long as others", () => {
    const recent = new RecentEvents("s", 1)
    changes(recent, page(1, 0), "a?")
    assert.deepStrictEqual(changes(recent, page(2, 10), "a"), ["-a?", "+a"])
    assert.deepStrictEqual(changes(recent, page(3, 20), "a", "b"), ["+b"])
  })

  it("of a worker that had to stop counts until that of the repeated job comes", () => {
    const recent = new RecentEvents("s", 1)
    const stopped = usageEvent({ id: "a", outcome: "failure", error: "WorkerLost" })
    assert.deepStrictEqual(changes(recent, page(1, 0), "a?"), ["+a?"])
    // twice: a page may be read again
    for (let time = 0; time < 2; time++) {
      assert.deepStrictEqual(recent.read(page(2, 1), [stopped]).map(({ isWithdrawn }) => isWithdrawn), [true, false])
      assert.deepStrictEqual(changes(recent, page(3, 2), "a?"), [])
      const ended = recent.read(page(4, 3), [usageEvent({ id: "a" })])
      assert.deepStrictEqual(ended[0], { event: stopped, isWithdrawn: true, page: 2 })
      assert.strictEqual(ended[1]?.event.outcome, "success")
    }
    assert.deepStrictEqual(recent.read(page(5, 4), [stopped]), [])
  })

  it("is remembered for ten minutes, or for 250,000 others", () => {
    const recent = new RecentEvents("s", 1)
    read(recent, page(1, 0), "a")
    assert.deepStrictEqual(read(recent, page(2, 10), "a", "b"), ["b"])
    assert.deepStrictEqual(read(recent, page(3, 20), "a", "b"), ["a"])

    const busy = new RecentEvents("s", 1)
    const perPage = 1_000
    for (let sequence = 1; sequence <= 750; sequence++) {
      read(busy, page(sequence, 0), ...Array.from({ length: perPage }, (_, index) => `${sequence}-${index}`))
    }
    assert.deepStrictEqual(read(busy, page(751, 0), "1-0", "501-0", "750-999"), ["1-0"])
    assert.strictEqual(busy.from, 501)
  })
})
